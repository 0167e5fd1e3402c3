// Package timeout bounds the time until the head of a server's response.
package timeout

import "headgate/internal/setting/unit"

// Config is the time until the head of the upstream's response, for each attempt.
// When it is over the client gets 504. Bodies and upgraded connections have
// idle time-outs of their own and no total. 0 switches it off.
type Config = unit.Duration
