-- Campaigns are listed newest first.
create index campaigns_newest on {{schema}}.campaigns (created_at desc, id desc);
