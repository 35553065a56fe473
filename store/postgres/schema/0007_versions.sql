-- How many visits a record has taken in: 1 is the first one, or that of a copy.
alter table pages add column version bigint not null default 0;
