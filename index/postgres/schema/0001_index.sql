-- Keys are those of the pages: hash of the host first. The vector holds the
-- words of index/analysis with their places: title A, address B, text D; and,
-- without places, a lexeme for each filter (=host=example.org, =kind=web).
create table documents (
    host       bigint not null,
    url        bigint not null,
    id         text not null,
    kind       text not null,
    type       text not null,
    hostname   text not null,
    lang       text not null,
    title      text not null,
    body       text not null,
    date       bigint not null, -- seconds since 1970
    size       bigint not null,
    popularity double precision not null,
    same       text not null,
    words      tsvector not null,
    primary key (host, url)
);
create index documents_words on documents using gin (words);
create index documents_date on documents (date);

-- One cursor a node: each indexes what it fetched.
create table index_cursors (
    lane   text primary key,
    cursor bytea not null
);

-- The number of documents is the sum of this table, which batches append to.
create table index_tally (
    id bigint primary key, -- random
    n  bigint not null
);
