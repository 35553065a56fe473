-- Which pages name another as their canonical form: they are looked at again when that one
-- can stand for them, or cannot any more. Entries of what a page named before may remain.
create table aliases (
    target_host bigint not null,
    target_url  bigint not null,
    host        bigint not null,
    url         bigint not null,
    primary key (target_host, target_url, host, url)
);
