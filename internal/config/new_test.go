package config

import "reflect"

// newPort returns a port with every default; it lacks its address and protocol.
func newPort(name string) *Port {
	p := &Port{}
	model().port.Fill(reflect.ValueOf(p).Elem())
	p.Name = name
	return p
}

// newProxy returns a proxy with every default and without routes.
func newProxy(name string) *Proxy {
	p := &Proxy{}
	model().proxy.Fill(reflect.ValueOf(p).Elem())
	p.Name = name
	return p
}

// newServer returns a server with this URL and every other default.
func newServer(url string) *Server {
	s := &Server{}
	model().server.Fill(reflect.ValueOf(s).Elem())
	s.URL = url
	return s
}
