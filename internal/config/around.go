package config

import "reflect"

// SameAround reports whether two configurations are equal except for their proxies, streams
// and certificates: the ports, and what all proxies share.
func (c *Config) SameAround(other *Config) bool {
	a, b := *c, *other
	for _, x := range []*Config{&a, &b} {
		x.Proxies, x.TCPProxies, x.UDPProxies, x.Certificates, x.loaded, x.expanded, x.secrets = nil, nil, nil, nil, nil, nil, nil
		x.documents, x.found = nil, nil
		x.Webhooks, x.Notices, x.Discovery, x.Admin = nil, nil, Discovery{}, Admin{} // no request meets them
	}
	return reflect.DeepEqual(&a, &b)
}
