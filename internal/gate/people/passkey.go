package people

import "time"

// Passkey is a passkey as others see it.
type Passkey struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`
}

type key struct{ Passkey }
