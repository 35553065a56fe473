-- Keys begin with the hash of the host, so that a range-sharded engine spreads
-- hosts over its machines and a host's pages lie together. Hashes are stored
-- with their first bit flipped: signed integers then sort as the bytes do.
-- Times are milliseconds since 1970.

create table hosts (
    host   bigint primary key,
    name   text not null,
    record bytea,                     -- JSON of store.Host
    next   bigint not null default 0, -- politeness: no request before
    fresh  boolean not null,          -- may have pages never visited
    ready  bigint not null,           -- may be claimed from then on
    turn   bigint not null default 0, -- among equals, the lowest first
    token  bigint not null default 0, -- fencing token of the last claim
    leased bigint not null default 0, -- end of the lease, 0 without one
    node   text not null default '',  -- who holds the lease
    batch  bigint not null default 0, -- batches committed under the lease
    added  bigint not null default 0  -- URLs that the last of them added
);
create index hosts_ready on hosts (ready, turn);
create index hosts_leased on hosts (leased) where leased > 0;

create table pages (
    host    bigint not null,
    url     bigint not null,
    state   smallint not null default 0,
    depth   integer not null default 0,
    ord     bigint not null default 0, -- place among the pages never visited
    due     bigint not null default 0, -- time of the next visit
    address text not null,
    origin  text not null default '',  -- page on which it was found first
    record  bytea,                     -- JSON of store.Page, after the first visit
    primary key (host, url)
);
create index pages_new on pages (host, ord) where ord > 0;
create index pages_due on pages (host, due) where due > 0;

create table links (
    host    bigint not null,
    url     bigint not null,
    targets bytea not null, -- keys of 16 bytes
    primary key (host, url)
);

create table visits (
    at      bigint not null,
    host    bigint not null,
    url     bigint not null,
    changed boolean not null,
    status  integer not null,
    bytes   bigint not null,
    took    bigint not null, -- nanoseconds
    primary key (at, host, url)
);

-- Changes arrive in the inbox, in whatever order transactions end, and get
-- their numbers when somebody reads the feed: commits of different hosts have
-- no row in common. A lane is the feed of one node.
create table inbox (
    host bigint not null,
    url  bigint not null,
    lane text not null,
    at   bigint not null,
    n    integer not null, -- place in its batch
    primary key (host, url)
);
create index inbox_lane on inbox (lane, at, n);

create table feeds (
    lane text primary key,
    seq  bigint not null
);

create table changes (
    lane text not null,
    seq  bigint not null,
    host bigint not null,
    url  bigint not null,
    at   bigint not null,
    primary key (lane, seq)
);

-- Counters are the sums of this table. Each batch adds a row instead of
-- waiting for one that all share; readers fold rows together.
create table tally (
    id       bigint primary key, -- random
    hosts    bigint not null,
    urls     bigint not null,
    fresh    bigint not null,
    ok       bigint not null,
    redirect bigint not null,
    gone     bigint not null,
    blocked  bigint not null,
    failed   bigint not null,
    excluded bigint not null
);

create table settings (
    name  text primary key,
    value bytea not null
);
