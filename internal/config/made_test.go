package config

import (
	"reflect"

	"headgate/internal/schema"
)

// Configurations that a test puts together by itself.

// NewPort returns a port with every default; it lacks its address and protocol.
func NewPort(name string) *Port {
	p := &Port{}
	model().port.Fill(reflect.ValueOf(p).Elem())
	p.Name = name
	return p
}

// NewProxy returns a proxy with every default and without routes.
func NewProxy(name string) *Proxy {
	p := &Proxy{}
	model().proxy.Fill(reflect.ValueOf(p).Elem())
	p.Name = name
	return p
}

// NewServer returns a server with this URL and every other default.
func NewServer(url string) *Server {
	s := &Server{}
	model().server.Fill(reflect.ValueOf(s).Elem())
	s.URL = url
	return s
}

// Check tells what does not fit together; Load has done it already.
func Check(c *Config, report *schema.Report) { newChecker(c, report).checkKinds() }
