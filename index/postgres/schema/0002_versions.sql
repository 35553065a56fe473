-- The version of the page that a document was made of (0: not known). A removed
-- document leaves a row without text for some days, so that no older version is
-- written after it: removed is when that was, in milliseconds since 1970, else 0.
alter table documents add column version bigint not null default 0;
alter table documents add column removed bigint not null default 0;
