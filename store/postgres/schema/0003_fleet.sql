-- What holds for all nodes together.

-- A budget is a clock: until when its requests are spoken for.
create table budgets (
    name text primary key,
    next bigint not null -- microseconds since 1970, by the database's clock
);

-- Right n of few to ask the servers at one address. Rows are there while they
-- are held; that of a dead node is another's when its time is up.
create table places (
    address text not null,
    n       integer not null,
    node    text not null,
    until   bigint not null,
    primary key (address, n)
);
