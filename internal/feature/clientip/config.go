package clientip

// Config says whom to believe about the client's address. It has no settings
// yet: nobody is believed, so the client is the peer, and what a request claims
// about the way it came is dropped.
type Config struct{}
