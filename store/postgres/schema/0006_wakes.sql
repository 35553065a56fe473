-- Hosts to be looked at again after the transaction that wrote the row: pages were
-- queued there, or they were given back without new pages. The process that wrote
-- the row does so right away and removes it later; rows of one that died are done by
-- others.
create table wakes (
    id    bigint primary key, -- random
    at    bigint not null,
    hosts bigint[] not null
);
create index wakes_at on wakes (at);

-- When the page was asked for by a signal while its host was leased, in milliseconds
-- and rising: a commit keeps what was asked after the page had been taken.
alter table pages add column asked bigint not null default 0;
