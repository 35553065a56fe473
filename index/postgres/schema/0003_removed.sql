create index documents_removed on documents (removed) where removed > 0;
