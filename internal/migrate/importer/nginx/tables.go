package nginx

import "headgate/internal/migrate/importer"

// table has the verdict of each directive that needs no look at its arguments.
var table = importer.NewTable(rows)

// inherited has what is said of directives that hold in the blocks below, where none of
// these uses them.
var inherited = importer.NewTable([]importer.Row{importer.NewRow("client_max_body_size proxy_read_timeout proxy_connect_timeout proxy_send_timeout grpc_read_timeout grpc_connect_timeout grpc_send_timeout fastcgi_read_timeout fastcgi_connect_timeout fastcgi_send_timeout proxy_set_header add_header more_set_headers more_clear_headers more_set_input_headers more_clear_input_headers "+
	"gzip gzip_types gzip_min_length brotli zstd allow deny auth_basic auth_basic_user_file auth_request auth_request_set satisfy limit_req limit_req_status proxy_cache proxy_cache_valid proxy_cache_use_stale proxy_cache_key proxy_cache_bypass proxy_no_cache proxy_cache_background_update "+
	"proxy_hide_header proxy_pass_header proxy_redirect proxy_intercept_errors proxy_next_upstream proxy_next_upstream_tries set_real_ip_from real_ip_header keepalive_timeout error_page access_log ssl_certificate ssl_certificate_key ssl_protocols return rewrite set break if location default_type server_name", importer.Ignored, "nothing that was translated uses it")})

// rows are the directives by what is to be said of them.
var rows = []importer.Row{
	importer.NewRow("user worker_processes worker_rlimit_core worker_aio_requests accept_mutex_delay env debug_points ssl_engine worker_connections worker_rlimit_nofile worker_cpu_affinity worker_priority worker_shutdown_timeout use multi_accept accept_mutex events pid daemon master_process thread_pool pcre_jit timer_resolution lock_file working_directory debug_connection", importer.Ignored, "headgate has one process that uses all processors; systemd or the container says as whom it runs"),
	importer.NewRow("load_module", importer.Ignored, "there are no modules; each directive of a module has its own verdict"),
	importer.NewDefault("include", importer.Same, "the files are read in its place"),
	importer.NewRow("error_log", importer.Ignored, "headgate's own log goes to the standard error output, which systemd or the container keeps"),
	importer.NewDefault("log_format log_not_found log_subrequest open_log_file_cache", importer.Close, "the access log is JSON with every field, or the combined format: access_log: {format: combined}"),
	importer.NewRow("default_type types types_hash_max_size types_hash_bucket_size charset charset_types source_charset override_charset", importer.Ignored, "the servers say the type of what they send"),
	importer.NewRow("connection_pool_size request_pool_size subrequest_output_buffer_size directio_alignment max_ranges max_errors keepalive_min_timeout proxy_allow_upstream proxy_cache_max_range_offset proxy_socket_rcvbuf proxy_socket_sndbuf sendfile sendfile_max_chunk tcp_nopush tcp_nodelay aio aio_write directio output_buffers postpone_output send_lowat read_ahead lingering_close lingering_time lingering_timeout reset_timedout_connection", importer.Ignored, "headgate does what is best by itself"),
	importer.NewRow("server_names_hash_max_size server_names_hash_bucket_size variables_hash_max_size variables_hash_bucket_size map_hash_max_size map_hash_bucket_size proxy_headers_hash_max_size proxy_headers_hash_bucket_size", importer.Ignored, "tables have no sizes to set"),
	importer.NewRow("server_tokens", importer.Ignored, "headgate does not send its version"),
	importer.NewRow("fastcgi_temp_path uwsgi_temp_path scgi_temp_path proxy_store_access proxy_buffering proxy_buffers proxy_buffer_size proxy_busy_buffers_size proxy_request_buffering proxy_max_temp_file_size proxy_temp_file_write_size proxy_temp_path client_body_buffer_size client_body_temp_path client_body_in_file_only client_body_in_single_buffer proxy_limit_rate", importer.Ignored, "bodies are passed on as they come and never kept in files"),
	importer.NewDefault("proxy_http_version", importer.Same, "servers get HTTP/1.1, or HTTP/2 where they speak it"),
	importer.NewRow("proxy_socket_keepalive proxy_ignore_client_abort proxy_send_lowat proxy_bind proxy_force_ranges proxy_intercept_errors proxy_pass_request_headers proxy_pass_request_body proxy_set_body proxy_method", importer.Impossible, "headgate has no such setting; look whether the default does"),
	importer.NewDefault("proxy_redirect", importer.Close, "Location and the Path of cookies are mapped back by themselves where a prefix was stripped"),
	importer.NewRow("proxy_ssl_password_file ssl_password_file", importer.Impossible, "keys are read without a password: write the key without one (openssl pkey -in KEY -out NEW)"),
	importer.NewDefault("ssl_reject_handshake", importer.Close, "names without a certificate get the default one of the port, or a self-signed one, and their requests 404"),
	importer.NewRow("add_trailer proxy_cache_purge ssl_ocsp_cache ssl_ocsp_responder proxy_ssl_crl", importer.Impossible, "headgate has no such setting"),
	importer.NewRow("proxy_half_close proxy_requests proxy_responses proxy_session_drop", importer.Ignored, "sessions end after idle_timeout"),
	importer.NewRow("proxy_cookie_domain proxy_cookie_flags proxy_cookie_path", importer.Impossible, "cookies of servers are not changed, except that their Path is mapped back where a prefix was stripped; a response header rule can replace text in Set-Cookie"),
	importer.NewRow("ssl_key_log ssl_certificate_cache ssl_certificate_compression ssl_ciphers ssl_prefer_server_ciphers ssl_ecdh_curve ssl_dhparam ssl_conf_command ssl_buffer_size", importer.Ignored, "TLS 1.2 and 1.3 with forward secrecy and authenticated encryption only"),
	importer.NewRow("ssl_session_cache ssl_session_timeout ssl_session_tickets ssl_session_ticket_key ssl_early_data", importer.Ignored, "sessions are resumed with tickets whose keys rotate automatically; early data is not accepted"),
	importer.NewRow("ssl_stapling ssl_stapling_verify ssl_stapling_file ssl_trusted_certificate ssl_stapling_responder", importer.Ignored, "OCSP answers are stapled by themselves where a certificate names a responder"),
	importer.NewRow("http2 http2_push http2_push_preload http2_max_requests http2_recv_timeout http2_chunk_size http2_body_preread_size http2_max_concurrent_streams http3 http3_hq quic_retry quic_gso quic_host_key quic_active_connection_id_limit", importer.Ignored, "https ports speak HTTP/2 by themselves; HTTP/3 needs a port with protocol: http3"),
	importer.NewDefault("resolver resolver_timeout", importer.Close, "server names are resolved again automatically; upstreams: {resolvers: […]} sets the name servers"),
	importer.NewRow("keepalive_requests keepalive_disable keepalive_time", importer.Ignored, "connections are kept as long as they are used"),
	importer.NewDefault("client_header_timeout client_header_buffer_size large_client_header_buffers", importer.Close, "limits of a port: header_timeout, header_size; the defaults are 30s and 32KiB"),
	importer.NewDefault("client_body_timeout send_timeout", importer.Close, "limits of a port: body_idle_timeout, write_idle_timeout; the defaults are 60s"),
	importer.NewRow("expires", importer.Impossible, "a rule for the response header Cache-Control says the same: max-age and the seconds"),
	importer.NewRow("root index autoindex alias try_files gzip_static brotli_static", importer.Impossible, "no route that was imported serves these files: a route with files needs a path that is a prefix, and a server without scripts"),
	importer.NewRow("autoindex_exact_size autoindex_format etag if_modified_since open_file_cache open_file_cache_valid open_file_cache_min_uses open_file_cache_errors disable_symlinks random_index", importer.Impossible, "files have no such setting: they always have an ETag, and links may not lead out of the root"),
	importer.NewRow("fastcgi_pass fastcgi_param fastcgi_index fastcgi_split_path_info", importer.Impossible, "scripts run at a location for PHP beside one with a root, with SCRIPT_FILENAME below it; write fastcgi of a route for others"),
	importer.NewRow("fastcgi_read_timeout fastcgi_connect_timeout fastcgi_send_timeout", importer.Impossible, "write request_timeout, and timeouts: {connect}"),
	importer.NewRow("fastcgi_buffers fastcgi_buffer_size fastcgi_busy_buffers_size fastcgi_buffering fastcgi_request_buffering fastcgi_max_temp_file_size", importer.Ignored, "bodies are passed on as they come"),
	importer.NewRow("fastcgi_keep_conn", importer.Ignored, "connections are kept with fastcgi.keep_connections, which needs max_requests of the server"),
	importer.NewRow("uwsgi_pass uwsgi_param scgi_pass scgi_param memcached_pass", importer.Impossible, "headgate uses HTTP and FastCGI for servers; use a server with HTTP in front of others"),
	importer.NewRow("sub_filter sub_filter_once sub_filter_types addition_types add_before_body add_after_body ssi ssi_types xslt_stylesheet image_filter", importer.Impossible, "bodies of responses are not changed, on purpose"),
	importer.NewRow("lua_package_path lua_shared_dict access_by_lua_block access_by_lua_file content_by_lua_block content_by_lua_file rewrite_by_lua_block rewrite_by_lua_file set_by_lua_block header_filter_by_lua_block body_filter_by_lua_block log_by_lua_block init_by_lua_block init_worker_by_lua_block balancer_by_lua_block ssl_certificate_by_lua_block js_import js_content js_set js_access perl_set perl_modules", importer.Impossible, "there is no scripting, on purpose"),
	importer.NewRow("rewrite_log uninitialized_variable_warn", importer.Ignored, "headgate explain shows how a request is handled"),
	importer.NewRow("split_clients geo geoip_country geoip2 userid perl valid_referers", importer.Impossible, "no route is chosen by chance, by the country or by the Referer of a client; ip_filter says who is let in by address"),
	importer.NewRow("limit_conn limit_conn_zone limit_conn_status limit_conn_log_level limit_conn_dry_run limit_rate limit_rate_after", importer.Impossible, "connections and bandwidth are not bounded by client; limits of a port bound memory and connections in all, rate_limit limits requests"),
	importer.NewDefault("limit_req_status limit_req_log_level limit_req_dry_run", importer.Close, "who is over the limit gets 429; mode: observe only counts"),
	importer.NewRow("gzip_comp_level gzip_buffers gzip_http_version gzip_proxied gzip_vary gzip_disable gunzip brotli_comp_level brotli_types brotli_min_length zstd_types zstd_comp_level", importer.Ignored, "compression chooses the level and the form that the client prefers"),
	importer.NewDefault("proxy_cache_lock proxy_cache_lock_timeout proxy_cache_lock_age proxy_cache_revalidate proxy_cache_background_update proxy_cache_min_uses proxy_cache_use_stale proxy_cache_methods proxy_cache_convert_head proxy_store proxy_ignore_headers", importer.Close, "the cache keeps to RFC 9111: it collapses requests, validates, and serves stale as stale_while_revalidate and stale_if_error say"),
	importer.NewDefault("proxy_cache_path", importer.Close, "the cache is in memory: cache: {memory_limit: …}"),
	importer.NewRow("proxy_cache_key proxy_cache_bypass proxy_no_cache", importer.Ignored, "no route that was translated has a cache"),
	importer.NewRow("proxy_ssl_verify proxy_ssl_trusted_certificate proxy_ssl_name proxy_ssl_certificate proxy_ssl_certificate_key proxy_ssl_key_log grpc_ssl_verify grpc_ssl_trusted_certificate grpc_ssl_name grpc_ssl_certificate grpc_ssl_certificate_key", importer.Ignored, "no https server that was translated uses it"),
	importer.NewRow("proxy_ssl_server_name proxy_ssl_protocols proxy_ssl_ciphers proxy_ssl_session_reuse proxy_ssl_verify_depth proxy_ssl_alpn proxy_ssl_conf_command proxy_ssl_certificate_cache grpc_ssl_server_name grpc_ssl_protocols grpc_ssl_ciphers grpc_ssl_session_reuse", importer.Ignored, "https servers get the name of their URL, and TLS 1.2 or 1.3"),
	importer.NewRow("proxy_ssl", importer.Impossible, "write tls: {} at the servers of the TCP proxy"),
	importer.NewRow("stub_status status api", importer.Ignored, "the admin listener has /metrics and /status"),
	importer.NewRow("absolute_redirect port_in_redirect server_name_in_redirect merge_slashes underscores_in_headers ignore_invalid_headers chunked_transfer_encoding msie_padding msie_refresh recursive_error_pages auth_delay", importer.Impossible, "headgate has no such setting; look whether the default does"),
	importer.NewDefault("real_ip_recursive", importer.Same, "the right-most address that is not trusted is the client"),
	importer.NewRow("keepalive keepalive_timeout_upstream zone ntlm queue random state sticky_cookie_insert", importer.Ignored, "connections to servers are kept and shared by themselves"),
	importer.NewDefault("proxy_next_upstream proxy_next_upstream_tries proxy_next_upstream_timeout", importer.Close, "a server that cannot be connected to is left for another; retry says what else is tried again"),
	importer.NewRow("preread_timeout ssl_preread proxy_protocol_timeout proxy_upload_rate proxy_download_rate variables_hash", importer.Impossible, "headgate has no such setting; look whether the default does"),
	importer.NewRow("auth_jwt auth_jwt_key_file ssl_crl ssl_verify_depth ssl_ocsp mirror_request_body", importer.Impossible, "headgate has no such check"),
	importer.NewDefault("internal", importer.Same, "clients get 404"),
}
