package caddy

import "headgate/internal/migrate/importer"

// table has the verdict of each directive or option that nobody looks at.
var table = importer.NewTable([]importer.Row{
	importer.NewRow("acme_server pki local_certs skip_install_trust cert_lifetime", importer.Impossible, "headgate has no authority of its own; certificates come by ACME or from files"),
	importer.NewRow("fs filesystem invoke events", importer.Impossible, "about modules of Caddy that headgate has not"),
	importer.NewRow("handle_errors handle_response replace_status copy_response copy_response_headers intercept", importer.Impossible, "write the pages in error_pages, with upstream: true for what servers answer"),
	importer.NewRow("map vars", importer.Impossible, "there are no variables; give Caddy's JSON (caddy adapt), which may say it otherwise"),
	importer.NewRow("method", importer.Impossible, "the method is passed on as it came"),
	importer.NewRow("rewrite", importer.Impossible, "write it as rewrite of the route: {regex, replacement}"),
	importer.NewRow("dynamic", importer.Impossible, "a server by its name stands for each address that it has: servers: [{url: http://NAME:PORT}]"),
	importer.NewRow("lb_retry_match", importer.Close, "what is idempotent is sent again: retry of the route"),
	importer.NewRow("health_upstream health_request_body health_follow_redirects", importer.Impossible, "checks ask the server itself, without a body, and follow no redirects"),
	importer.NewRow("request_buffers response_buffers buffer_requests buffer_responses max_buffer_size stream_timeout stream_close_delay verbose_logs", importer.Ignored, "bodies are passed on as they come; tunnels have idle times"),
	importer.NewRow("default_bind", importer.Close, "the address stands at the port"),
	importer.NewRow("default_sni fallback_sni", importer.Close, "tls: {default_certificate: …} of the port"),
	importer.NewRow("storage_clean_interval storage_check renew_interval ocsp_interval ocsp_stapling", importer.Ignored, "certificates are renewed, stapled and thrown away by themselves"),
	importer.NewRow("acme_ca_root acme_eab key_type preferred_chains cert_issuer", importer.Close, "set it in acme.main: ca_file, eab, key_type, preferred_chain, directory"),
	importer.NewRow("on_demand_tls", importer.Impossible, "certificates are ordered for hosts that the configuration names"),
	importer.NewRow("servers", importer.Ignored, "ports have their own limits"),
})
