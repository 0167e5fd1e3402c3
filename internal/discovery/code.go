package discovery

// Code is the kind of an issue, in one word.
type Code string

// Codes of what a provider sees.
const (
	// NoPort is of a container of which no port is known.
	NoPort Code = "no_port"
	// SeveralPorts is of a container with several ports, of which no label names one.
	SeveralPorts Code = "several_ports"
	// NoNetwork is of a container at which no address can be reached from here.
	NoNetwork Code = "no_shared_network"
	// SeveralNetworks is of a container with several networks, of which none was named.
	SeveralNetworks Code = "several_networks"
	// NoHost is of a container that says nothing of its virtual hosts.
	NoHost Code = "no_host"
	// NotReady is of a container that has been starting for too long.
	NotReady Code = "not_ready"
	// Unhealthy is of a container that says that it is not healthy.
	Unhealthy Code = "unhealthy"
	// MisplacedLabels is for labels in a place where they have no effect.
	MisplacedLabels Code = "misplaced_labels"
	// ReplicasDiffer is of containers of one service that do not say the same.
	ReplicasDiffer Code = "replicas_differ"
	// BadDocument is of a document that is not used because of a mistake in it.
	BadDocument Code = "bad_document"
	// TooMany is of what goes over a bound: containers, labels, their length.
	TooMany Code = "too_many"
)

// Codes of what the merge sees. A provider has the first two for labels that are not of
// an object, such as headgate.enable=maybe.
const (
	// UnknownLabel is of a label that means nothing.
	UnknownLabel Code = "unknown_label"
	// BadValue is of a label whose value is not possible.
	BadValue Code = "bad_value"
	// NotForLabels is of a field that exists, and that labels may not set.
	NotForLabels Code = "not_for_labels"
	// Conflict is of two that want the same: a name, a host and path, an address.
	Conflict Code = "conflict"
	// HostTaken is of a host that the documents name.
	HostTaken Code = "host_taken"
	// OutOfBounds is of what the provider's entry does not allow.
	OutOfBounds Code = "out_of_bounds"
	// OwnSocket is of a server that would be headgate itself.
	OwnSocket Code = "own_socket"
	// NoSuchObject is of a name of an ACME entry, a policy or a port that is not there.
	NoSuchObject Code = "no_such_object"
	// Invalid is of an object that cannot be used as a whole.
	Invalid Code = "invalid"
	// AddressInUse means that another listener has the address.
	AddressInUse Code = "address_in_use"
)
