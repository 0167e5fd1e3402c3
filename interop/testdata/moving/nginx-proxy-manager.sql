CREATE TABLE proxy_host (id integer not null primary key autoincrement, created_on datetime, modified_on datetime, owner_user_id integer, is_deleted integer not null default '0',
  domain_names json not null, forward_host varchar(255), forward_port integer, access_list_id integer default '0', certificate_id integer default '0', ssl_forced integer default '0',
  caching_enabled integer default '0', block_exploits integer default '0', advanced_config text default '', meta json, allow_websocket_upgrade integer default '0', http2_support integer default '0',
  forward_scheme varchar(255) default 'http', enabled integer default '1', locations json, hsts_enabled integer default '0', hsts_subdomains integer default '0');
INSERT INTO proxy_host (domain_names, forward_host, forward_port, access_list_id, certificate_id, ssl_forced, block_exploits, advanced_config, meta, allow_websocket_upgrade, http2_support, locations, hsts_enabled) VALUES
  ('["shop.example.com"]', '127.0.0.1', 3000, 1, 1, 1, 1, 'client_max_body_size 20m;
add_header X-Frame-Options DENY always;', '{}', 1, 1, '[{"path":"/api/","forward_scheme":"http","forward_host":"127.0.0.1","forward_port":3001,"advanced_config":""}]', 1);
CREATE TABLE redirection_host (id integer primary key, is_deleted integer default 0, domain_names json, forward_domain_name text, preserve_path integer, forward_scheme text, forward_http_code integer, certificate_id integer, enabled integer default 1, meta json);
INSERT INTO redirection_host VALUES (1, 0, '["old.example.com"]', 'shop.example.com', 1, 'https', 301, 0, 1, '{}');
CREATE TABLE dead_host (id integer primary key, is_deleted integer default 0, domain_names json, certificate_id integer, enabled integer default 1);
INSERT INTO dead_host VALUES (1, 0, '["gone.example.com"]', 0, 1);
CREATE TABLE stream (id integer primary key, is_deleted integer default 0, incoming_port integer, forwarding_host text, forwarding_port integer, tcp_forwarding integer, udp_forwarding integer, enabled integer default 1);
CREATE TABLE access_list (id integer primary key, is_deleted integer default 0, name text, satisfy_any integer default 0, pass_auth integer default 0, meta json);
INSERT INTO access_list VALUES (1, 0, 'Office', 0, 0, '{}');
CREATE TABLE access_list_auth (id integer primary key, access_list_id integer, username text, password text, meta json);
CREATE TABLE access_list_client (id integer primary key, access_list_id integer, address text, directive text, meta json);
INSERT INTO access_list_client VALUES (1, 1, '127.0.0.0/8', 'allow', '{}');
CREATE TABLE certificate (id integer primary key, is_deleted integer default 0, provider text, nice_name text, domain_names json, expires_on text, meta json);
INSERT INTO certificate VALUES (1, 0, 'other', 'shop', '["shop.example.com"]', '2037-01-01', '{}');
CREATE TABLE setting (id text primary key, name text, description text, value text, meta json);
INSERT INTO setting VALUES ('default-site', 'Default Site', '', '404', '{}');
