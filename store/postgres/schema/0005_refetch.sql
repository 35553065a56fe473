-- The body of a page cannot be read back: its next visit is unconditional. The
-- visit that brings the body clears the mark; one that was under way when the mark
-- was set does not.
alter table pages add column refetch boolean not null default false;
