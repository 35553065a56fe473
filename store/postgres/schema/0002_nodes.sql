-- The registry of processes. A node whose until has passed is dead.
create table nodes (
    name     text primary key,
    instance text not null,            -- told apart from another of the same name
    since    bigint not null,
    until    bigint not null,
    address  text not null default '', -- of its console
    wanted   integer not null,         -- agents it may run by its own configuration
    working  integer not null,
    agents   bytea not null            -- JSON of its agents
);

-- The global limit of agents: row n is the right to run one agent, and exists
-- only for n up to the limit.
create table slots (
    n     integer primary key,
    node  text not null default '',
    until bigint not null default 0
);
