// Package discovery is the seam between a configuration and what is found outside of its
// documents, such as containers that say by labels what they want to be proxied as.
//
// A provider (internal/discovery/docker is one) implements Source. It finds out which
// objects there are, and says so in Snapshots; control merges those of all sources with
// the documents, checks, compiles and swaps them like every other change. This is how a
// provider uses the seam:
//
//   - Its Opener is called while a configuration is prepared that has a new entry of
//     discovery, or a changed one: it may fail, as for a certificate that cannot be read,
//     and starts nothing. Start is called when the configuration is in force; it
//     returns at once. Stop is called exactly once, with or without Start: it ends
//     everything, and waits for it. A changed entry is a new Source; the objects of the
//     old one stay until the new one says that it knows better (Snapshot.Known).
//   - Snapshot is asked at any time and costs nothing: the provider makes it when
//     something changed, and then puts a value into Changed, which has room for one and
//     is never waited for. Many changes in a row may be one snapshot; control itself
//     gathers for 100 ms, and has one change in flight.
//   - An object that is what it was is the same *config.Discovered again. Two objects
//     that are equal are treated as the same, too; that only costs a comparison.
//   - Labels are given as they stand, split into the path of the field and the value. Short
//     ones are given as the field that they mean (headgate.host is virtual_hosts,
//     headgate.path is routes.0.path), with the Name that stands on the container. The
//     merge decodes them by the configuration's own decoder: unknown fields, fields that
//     labels may not set, bad values, names and bounds are issues that it finds.
//   - What decides about servers is the provider's: enable, port, scheme, network and
//     their labels, filters, exposed_by_default and network of its settings, the address
//     of a container and its port, health and state, replicas that are one object.
//   - A provider whose objects are Written (internal/discovery/httpdoc) gives the fields of
//     each object as labels, and the object names its own servers.
//   - The bounds hosts, acme, listen and ports of the settings are the merge's, as they
//     hold for what was found before they were set: the provider ignores them. So are
//     hosts that the documents name, two objects of one name, two owners of a host and
//     path, and servers that would be a socket of ours (config.DiscoveredServer.Shared
//     has to be right for that).
//   - When the provider cannot be asked, the snapshot has State Failed and a Reason, and
//     the objects that were known last: traffic goes on by them.
//   - Issues are those that are there now. A provider need not remember since
//     when, nor report that it is gone: control compares.
//
// Nothing here opens or starts anything.
package discovery

import (
	"crypto/x509"
	"log/slog"
	"slices"
	"strings"
	"time"

	"headgate/internal/config"
)

// Source finds objects outside of the documents. Its methods may be called by several
// goroutines at once.
type Source interface {
	// Start starts the discovery. It is called once and does not wait.
	Start()
	// Snapshot returns what is known now. It is never nil and does not wait.
	Snapshot() *Snapshot
	// Changed has a value when Snapshot may return a different result. It has space for
	// one value and is always the same channel.
	Changed() <-chan struct{}
	// Stop ends what Start started and waits for it. It is called once.
	Stop()
}

// Environment is what a provider gets from the process.
type Environment struct {
	// Log is the application's log.
	Log *slog.Logger
	// Dir is the directory that relative paths of the configuration refer to.
	Dir string
	// State is the directory below which a provider keeps what it needs at the next start;
	// "" keeps nothing.
	State string
	// Agent is the User-Agent of requests. Roots are the authorities to trust, nil for those
	// of the system.
	Agent string
	Roots *x509.CertPool
}

// DockerOpener returns the source of an entry of discovery.docker. It starts nothing.
// The error says what is wrong with the settings beyond what a check of them can see,
// such as a file that cannot be read.
type DockerOpener func(name string, settings *config.Docker, env Environment) (Source, error)

// HTTPOpener is the same for an entry of discovery.http.
type HTTPOpener func(name string, settings *config.HTTPDocument, env Environment) (Source, error)

// AgentOpener is the same for an entry of discovery.agent.
type AgentOpener func(name string, settings *config.Agent, env Environment) (Source, error)

// Forgetter is a source that keeps something for the next start. Forget removes it. It is
// called after Stop, when the entry was removed from the configuration.
type Forgetter interface{ Forget() }

// Snapshot is what a source knows at one moment. It is not changed once it was returned.
type Snapshot struct {
	// State is the state of the source, since Since.
	State State
	Since time.Time
	// Reason is why it Failed, for people: "dial unix /var/run/docker.sock: connection
	// refused". Hint is what to do, and may be empty.
	Reason, Hint string
	// Known is whether Objects were found by this source. Until then those of the source
	// before it, of the same entry, stay.
	Known bool
	// Objects are the discovered objects, in any order; the last known ones while
	// the source is unavailable.
	Objects []*config.Discovered
	// Issues are what the source could not make an object of, or not the whole.
	Issues []Issue
}

// State is the state of a source.
type State string

// The states.
const (
	// Connecting is from the start to the first answer.
	Connecting State = "connecting"
	// Running: the source is connected.
	Running State = "running"
	// Stale is of a machine whose agent does not report any more; what it reported last stays
	// for a while.
	Stale State = "stale"
	// Failed is while it is not; it is tried again without end.
	Failed State = "error"
)

// Issue is something in what a source found that cannot be used.
type Issue struct {
	// Provider is the entry of discovery. The merge fills it in.
	Provider string `json:"provider"`
	// Container is whose it is, "" for the provider itself and for documents.
	Container string `json:"container,omitempty"`
	// Label is the label that is meant, if it is one; or the field, of an object in a
	// document.
	Label string `json:"label,omitempty"`
	// Kind and Name are the object that is concerned, such as proxies and shop, if one
	// is.
	Kind string `json:"kind,omitempty"`
	// Name is the object's name.
	Name string `json:"name,omitempty"`
	// Owner is the object of the configuration files that has what this one requires, if
	// that is the issue. It is reported at both.
	Owner Reference `json:"owner,omitzero"`
	// Code is the kind of issue.
	Code Code `json:"code"`
	// Message is what is wrong, in lower case and without a period. Together with the
	// fields above it identifies an issue: it contains nothing that changes by itself,
	// such as a time.
	Message string `json:"message"`
	// Hint is what to do, in the same form.
	Hint string `json:"hint,omitempty"`
	// Since is when it was seen first. Control fills it in.
	Since time.Time `json:"since,omitzero"`
}

// Reference names an object.
type Reference struct {
	// Kind is the kind of the object, such as proxies.
	Kind string `json:"kind"`
	// Name is its name.
	Name string `json:"name"`
}

// Objects returns the objects at which the issue is reported: none, one or two.
func (i *Issue) Objects() []Reference {
	var out []Reference
	if i.Name != "" {
		out = append(out, Reference{i.Kind, i.Name})
	}
	if i.Owner != (Reference{}) && !slices.Contains(out, i.Owner) {
		out = append(out, i.Owner)
	}
	return out
}

// String returns the issue in one line: "container shop-1, label headgate.host: the host
// a.example is one of proxy shop; choose another host".
func (i Issue) String() string {
	var b strings.Builder
	label := ", label "
	switch {
	case i.Container != "":
		b.WriteString("container " + i.Container)
	case i.Name != "":
		b.WriteString(config.KindOf(i.Kind).Noun + " " + i.Name)
		label = ", field "
	}
	if i.Label != "" {
		b.WriteString(label + i.Label)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(i.Message)
	if i.Hint != "" {
		b.WriteString("; " + i.Hint)
	}
	return b.String()
}
