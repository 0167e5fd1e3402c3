// Package pair keeps the state of two machines the same without a database: one leads and
// commits changes, the other follows and has a copy of everything in its own state
// directory. Both serve traffic from what they have, also when the other is away.
//
// A group is created with Init on the first machine. The second joins with a token that is
// valid once (Invite, Join) and gets a credential: a certificate of the group's own
// authority, which can be revoked alone. The machines call each other on the management
// port, with TLS for the name of the group, so that browsers never see that certificate.
//
// Store is the store.Store of a member. Reads come from the state directory. On the leader,
// changes are committed there. On the follower they are rejected with a *NotLeader that
// names the leader, except those that traffic causes, such as the use of a sign-in code,
// which are sent to the leader. The leader is the machine that the epoch names: a number
// and a name, signed with the credential. Promote makes the next epoch. There is no
// election: two machines cannot tell a crash of the other from a cut between them, so an
// operator decides.
//
// identity.go is the authority and credentials, and trust.go which of them are accepted;
// invite.go is tokens and joining; handler.go answers the other machine and peer.go calls
// it; engine.go is the leader as seen from the follower; role.go decides who leads, and
// promote.go changes it; state.go is what the status shows; diverged.go keeps what a leader
// had that yields.
package pair

import (
	"errors"
	"fmt"
	"time"

	"headgate/internal/store"
)

// The times of a pair.
const (
	// callEvery is how often a machine calls the other.
	callEvery = time.Second
	// callTimeout is how long one call takes at most.
	callTimeout = 3 * time.Second
	// beatEvery is how often the leader sends something on a stream.
	beatEvery = time.Second
	// silence is after how long without anything on a stream the leader counts as away.
	silence = 5 * time.Second
	// syncWait is how long a change waits until the follower has it.
	syncWait = 5 * time.Second
	// handWait is how long a promotion waits until the copy has the leader's last change.
	handWait = 10 * time.Second
	// TokenLife is for how long a token to join is valid.
	TokenLife = time.Hour
)

// MaxMembers is how many machines a group has. More need a database that they share.
const MaxMembers = 2

// Role is what a machine does with changes.
type Role string

// The roles.
const (
	// Leader commits changes.
	Leader Role = "leader"
	// Waiting is a leader that was started and has not reached the other machine yet, which
	// may have been promoted meanwhile. It commits nothing.
	Waiting Role = "waiting"
	// Follower has a copy of the leader's state.
	Follower Role = "follower"
)

// NotLeader is the error of a change on a machine that does not lead. It wraps
// store.ErrUnavailable.
type NotLeader struct {
	// Leader and Address are the name and the URL of the machine to make the change on.
	// They are empty while a leader waits for the other machine.
	Leader, Address string
	// Why is what prevents this machine from sending the change there, nil if that was not
	// tried.
	Why error
}

// Error names the leader.
func (e *NotLeader) Error() string {
	if e.Leader == "" {
		return "this machine has not reached the other one since it was started, which may have been promoted: start the other one, or run \"headgate promote --alone\" if it is lost"
	}
	text := fmt.Sprintf("this machine follows %s: make the change at %s", e.Leader, e.Address)
	if e.Why != nil {
		text += fmt.Sprintf(" (%v)", e.Why)
	}
	return text
}

// Unwrap makes the error one of a store that is unavailable.
func (e *NotLeader) Unwrap() []error {
	if e.Why != nil {
		return []error{store.ErrUnavailable, e.Why}
	}
	return []error{store.ErrUnavailable}
}

// NotFollowed is the error of a change on a leader that commits only what the follower has,
// while the follower is away. It wraps store.ErrUnavailable.
type NotFollowed struct {
	// Follower is the machine that is away, "" if none has joined.
	Follower string
}

// Error says what to do.
func (e *NotFollowed) Error() string {
	who := "the follower " + e.Follower
	if e.Follower == "" {
		who = "a follower"
	}
	return who + " is not connected, and follow.sync requires it for every change: nothing was changed; start it, or set sync to false in " + SettingsName + " and restart headgate"
}

// Unwrap makes the error one of a store that is unavailable.
func (e *NotFollowed) Unwrap() error { return store.ErrUnavailable }

// The errors of calls between machines. Their texts are sent, so the other machine can tell
// them apart.
var (
	errNotLeader = errors.New("this machine is not the leader: there is no follower of a follower")
	// ErrRemoved says that the credential of a machine was revoked.
	ErrRemoved = errors.New("the credential of this machine was revoked")
	// ErrToken says that a token to join is not valid.
	ErrToken = errors.New("the token is not valid: it was used, has expired, or is of another group")
	// ErrName says that a name cannot be used by a machine that joins.
	ErrName = errors.New("the name cannot be used")
	// ErrThrottled says that too many requests to join were refused.
	ErrThrottled = errors.New("too many requests to join were refused: try again in a minute")
	// ErrFull says that a group has as many machines as it can have.
	ErrFull = errors.New("the group has two machines already; remove one first, or share a database to have more")
)
