package agent

import (
	"fmt"
	"time"

	"headgate/internal/config"
	"headgate/internal/setting/shown"
)

// Report is what an agent sees of its machine.
type Report struct {
	// Objects are the proxies that labels of containers define.
	Objects []Object `json:"objects,omitempty" max:"2000"`
	// Issues are what of the labels cannot be used.
	Issues []Issue `json:"issues,omitempty" max:"1000"`
	// Failure is why the containers are not known now. The objects are the last known ones.
	Failure string `json:"failure,omitempty" max:"2048"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty" max:"2048"`
}

// Object is a proxy, TCP proxy or UDP proxy that labels define.
type Object struct {
	// Kind is proxies, tcp_proxies or udp_proxies.
	Kind string `json:"kind" required:"true" max:"40"`
	// Name is the name of the object.
	Name string `json:"name" required:"true" max:"256"`
	// Container is the name of the container.
	Container string `json:"container,omitempty" max:"256"`
	// Label is the label that made it an object, if one did.
	Label string `json:"label,omitempty" max:"16384"`
	// Created is when the container was created.
	Created time.Time `json:"created,omitzero"`
	// Labels are the fields that labels set.
	Labels []Label `json:"labels,omitempty" max:"2000"`
	// Servers are the published ports of the containers.
	Servers []Server `json:"servers,omitempty" max:"256"`
}

// Label is a field that a label sets.
type Label struct {
	// Path is the field, such as routes.0.path.
	Path string `json:"path" max:"16384"`
	// Value is its value.
	Value string `json:"value" max:"16384"`
	// Container is the container that has the label.
	Container string `json:"container,omitempty" max:"256"`
	// Name is the name of the label.
	Name string `json:"name,omitempty" max:"16384"`
}

// Server is a published port.
type Server struct {
	// Address is a URL, or a host and a port. Its host is replaced by the address of the
	// machine.
	Address string `json:"address" required:"true" max:"2048"`
	// Container is whose it is.
	Container string `json:"container,omitempty" max:"256"`
	// Labels are the fields of the server that labels set.
	Labels []Label `json:"labels,omitempty" max:"100"`
}

// Issue is something in the labels of containers that cannot be used.
type Issue struct {
	// Container is whose it is.
	Container string `json:"container,omitempty" max:"256"`
	// Label is the label that is meant, if it is one.
	Label string `json:"label,omitempty" max:"16384"`
	// Kind is the kind of the affected object, such as proxies.
	Kind string `json:"kind,omitempty" max:"40"`
	// Name is the object's name.
	Name string `json:"name,omitempty" max:"256"`
	// Code is a keyword for the kind of issue.
	Code string `json:"code" max:"40"`
	// Message describes the issue.
	Message string `json:"message" max:"32768"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty" max:"32768"`
}

// check reports what exceeds the limits, or cannot be an object.
func (r *Report) check() error {
	if len(r.Objects) > maxObjects || len(r.Issues) > maxIssues {
		return fmt.Errorf("%d objects and %d issues are more than the maximum of %d and %d", len(r.Objects), len(r.Issues), maxObjects, maxIssues)
	}
	for i := range r.Objects {
		o := &r.Objects[i]
		switch {
		case !known(o.Kind):
			return fmt.Errorf("there is no kind %q of objects", shown.Line(o.Kind, 40))
		case len(o.Servers) > maxServers || len(o.Labels) > config.MaxLabels:
			return fmt.Errorf("the object %q has more than %d servers, or more than %d labels", shown.Line(o.Name, 100), maxServers, config.MaxLabels)
		}
	}
	for _, i := range r.Issues {
		if i.Kind != "" && !known(i.Kind) {
			return fmt.Errorf("there is no kind %q of objects", shown.Line(i.Kind, 40))
		}
	}
	return nil
}

func known(kind string) bool {
	return kind == "proxies" || kind == "tcp_proxies" || kind == "udp_proxies"
}
