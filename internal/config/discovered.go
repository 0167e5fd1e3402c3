package config

import "time"

// Discovered is an object that a source found outside of the documents, such as in the
// labels of a container. It is not changed once it was made: a source that finds the
// same again gives the same pointer, so that nothing is done for it again.
type Discovered struct {
	// Kind is proxies, tcp_proxies or udp_proxies.
	Kind string
	// Name is what it is called, by which it is found in logs, metrics and the API. It
	// has the form of all names.
	Name string
	// Origin is where it was found: Via, Provider and Container, and the Label that made
	// it an object, if one label did.
	Origin Origin
	// Created is when its oldest container was created. Of two that want the same, the
	// older one has it.
	Created time.Time
	// Labels are the labels of its containers, in any order.
	Labels []Label
	// Servers are the servers of every route of a proxy without a fixed_response, or of a
	// TCP or UDP proxy. Without servers, a proxy responds with 503, and a TCP or UDP proxy
	// is omitted.
	Servers []DiscoveredServer
	// Written is whether the labels are the fields of an object of a document, which names
	// its servers itself. Servers is empty then.
	Written bool
}

// Writer returns the word for what defines the object, for messages.
func (d *Discovered) Writer() string {
	if d.Written {
		return "the document"
	}
	return "labels"
}

// Label is one value from a container label. Labels are trusted less than operators.
type Label struct {
	// Path is the field in the object, or in the server: "virtual_hosts", "routes.0.path",
	// "weight". Case is ignored.
	Path string
	// Value is the text, without expansion of ${…}. Elements of lists are separated by
	// commas.
	Value string
	// Container and Name are the source of the value, for messages: "shop-1" and
	// "headgate.http.shop.routes.0.path", or "" and "routes[0].path" of a document.
	Container, Name string
}

// DiscoveredServer is one server of an object that was discovered. Its address is
// decided by the source, never by a label.
type DiscoveredServer struct {
	// Address is a URL for proxies ("http://172.18.0.5:8080"), host and port for TCP and
	// UDP proxies ("172.18.0.5:5432"). Hosts are IP addresses.
	Address string
	// Container is whose it is.
	Container string
	// Shared is whether the address is one at which headgate could listen itself:
	// loopback, an address of the machine or of headgate's own container. Such a server
	// may not have the number of a port of ours.
	Shared bool
	// Labels are labels of the container for the server. Paths are those of a server:
	// "weight".
	Labels []Label
}
