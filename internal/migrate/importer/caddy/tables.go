package caddy

import "headgate/internal/migrate/importer"

// table has the verdict of each global option that is not translated.
var table = importer.NewTable([]importer.Row{
	importer.NewRow("admin log debug grace_period shutdown_delay storage order persist_config metrics", importer.Ignored, "about Caddy itself"),
	importer.NewRow("pki skip_install_trust cert_lifetime", importer.Impossible, "headgate has no authority of its own; certificates come by ACME or from files"),
	importer.NewRow("filesystem events", importer.Impossible, "about modules of Caddy that headgate has not"),
	importer.NewRow("default_sni fallback_sni", importer.Impossible, "write tls: {default_certificate: …} of the port"),
	importer.NewRow("storage_clean_interval storage_check renew_interval ocsp_interval ocsp_stapling", importer.Ignored, "certificates are renewed, stapled and thrown away by themselves"),
	importer.NewRow("acme_ca_root acme_eab key_type preferred_chains cert_issuer acme_dns", importer.Impossible, "write it in the acme entry: ca_file, eab, key_type, preferred_chain, directory, dns"),
	importer.NewRow("on_demand_tls", importer.Ignored, "on_demand of the proxies for sites with a wildcard or without a host that have tls { on_demand }; there is none"),
	importer.NewRow("on_demand", importer.Impossible, "nothing limits its hosts: set on_demand of the proxy with ask or list"),
	importer.NewRow("interval burst", importer.Ignored, "max_per_hour of on_demand"),
	importer.NewRow("listener_wrappers", importer.Ignored, "ports read what wrappers read: the PROXY header by proxy_protocol of the port, and TLS"),
	importer.NewRow("protocols timeouts max_header_size keepalive_interval enable_full_duplex log_credentials name strict_sni_host trace client_ip_headers trusted_proxies_strict", importer.Ignored, "ports have their own limits"),
})
