package store

import (
	"fmt"
	"strings"
	"time"
)

// The keys and the prefixes of keys. A prefix ends with a slash and is followed by
// a name. Nothing is kept under a key that is not named here.
const (
	// KeyHead holds which revision of the documents is served, and their digests.
	KeyHead = "head"
	// KeyConfirm holds the change that waits to be confirmed, if one does.
	KeyConfirm = "confirm"
	// KeyBefore holds the users and tokens before a restore that waits to be confirmed.
	KeyBefore = "restore/before"
	// KeySticky is the key that sticky cookies are made with.
	KeySticky = "key/sticky"
	// KeyTickets are the keys of TLS session tickets.
	KeyTickets = "key/tickets"
	// KeyQUIC are the keys of tokens and stateless resets of QUIC.
	KeyQUIC = "key/quic"
	// PrefixECH is followed by a public name of Encrypted Client Hello. The value is its keys.
	PrefixECH = "key/ech/"
	// KeyPurge is the last requested purge of caches, with its sequence.
	KeyPurge = "purge"
	// KeyGate is the key that sign-ins in progress are sealed with.
	KeyGate = "key/gate"
	// KeyGroupAuthority is the authority of a group of machines that follow each other, with
	// its key, and KeyEpoch says which of them leads.
	KeyGroupAuthority = "group/authority"
	KeyEpoch          = "group/epoch"
	// KeySelfSigned is the certificate for names that no other has, with its key, in PEM form.
	KeySelfSigned = "key/self-signed"

	// PrefixRevision is followed by the number of a configuration that was applied,
	// with eight digits or more.
	PrefixRevision = "revision/"
	// PrefixBlob is followed by the SHA-256 of what is too large for one value, in
	// hexadecimal digits, a slash, and the number of the part from 0 on.
	PrefixBlob = "blob/"
	// PrefixCertificate is followed by a certificate's name. The value is PEM text:
	// the leaf, its chain and the key, in one value, so that no half can be seen.
	// Text outside of the blocks may tell more.
	PrefixCertificate = "certificate/"
	// PrefixAccount is followed by the name of an ACME server.
	PrefixAccount = "acme/account/"
	// PrefixOrder is followed by the name of a certificate that is ordered.
	PrefixOrder = "acme/order/"
	// PrefixChallenge is followed by the token of an ACME challenge, or of tls-alpn-01 by
	// alpn/ and the name.
	PrefixChallenge = "acme/challenge/"
	// PrefixAcknowledged is followed by a digest of the answer to a challenge, and a
	// machine that gives it, too.
	PrefixAcknowledged = "acme/acknowledged/"
	// PrefixDemand is followed by the name of a proxy. The value is the orders on demand of
	// the last hour.
	PrefixDemand = "acme/demand/"
	// PrefixCDN is followed by the name of a CDN. The value is its list of networks.
	PrefixCDN = "cdn/"
	// PrefixUser is followed by an operator's name.
	PrefixUser = "user/"
	// PrefixToken is followed by the name of an API token.
	PrefixToken = "token/"
	// PrefixSession is followed by the SHA-256 of a session's secret, in hexadecimal
	// digits. At most MaxSessions are kept.
	PrefixSession = "session/"
	// PrefixPasskey is followed by the SHA-256 of a question for a passkey of an operator that
	// was answered, so that none is answered twice.
	PrefixPasskey = "passkey/"
	// PrefixWebhook is followed by a webhook's name, and for the messages that one of several
	// machines has sent for itself by a slash and the name of the machine.
	PrefixWebhook = "webhook/"
	// PrefixNotice is followed by a notice's name, and likewise by the machine.
	PrefixNotice = "notice/"
	// PrefixNode is followed by the name of a machine.
	PrefixNode = "node/"
	// PrefixFields is followed by the digest of the names of configuration fields. The value
	// are these names: what nodes with one of the releases that are in use know.
	PrefixFields = "fields/"
	// PrefixGroupMember is followed by the name of a machine of a group, and
	// PrefixGroupInvitation by the SHA-256 of the secret of a token to join it.
	PrefixGroupMember     = "group/member/"
	PrefixGroupInvitation = "group/invitation/"
	// PrefixDiverged is followed by the epoch of a leader that had changes of its own when
	// it yielded to another.
	PrefixDiverged = "diverged/"
	// PrefixHeld is followed by a digest of the name of a server that an operator drains or
	// has disabled.
	PrefixHeld = "held/"
	// PrefixSplit is followed by a digest of the name of a route with a split.
	PrefixSplit = "split/"
	// PrefixBan is followed by what package bans keeps: who is banned, who never is, and
	// where operators signed in from.
	PrefixBan = "ban/"
	// PrefixGate is what the keys of sessions, codes, tokens and links for applications
	// start with.
	PrefixGate = "gate/"
	// PrefixGateSession is followed by the SHA-256 of the secret of a session at the
	// sign-in host, or at an application's host, in hexadecimal digits.
	PrefixGateSession = "gate/session/"
	// PrefixGateRefresh is followed by the SHA-256 of the secret of a session at the sign-in
	// host. The value is the refresh token of the provider, with which the session is checked.
	PrefixGateRefresh = "gate/refresh/"
	// PrefixGateCode is followed by the SHA-256 of a code that leads from the sign-in host
	// to an application's host once.
	PrefixGateCode = "gate/code/"
	// PrefixGateOpen is followed by the host of an application whose gate is open for everyone
	// for a while.
	PrefixGateOpen = "gate/open/"
	// PrefixPerson is followed by what package gate/people keeps: people who sign in at
	// applications with a password or a passkey, and their invitations.
	PrefixPerson = "person/"
	// PrefixGateToken is followed by the name of a token of an application.
	PrefixGateToken = "gate/token/"
	// PrefixGateLink is followed by the SHA-256 of the secret of a share link, and
	// PrefixGateVisit by that of the cookie of a browser that has opened one.
	PrefixGateLink  = "gate/link/"
	PrefixGateVisit = "gate/visit/"
	// PrefixSetup is followed by what setting up the first operator needs.
	PrefixSetup = "setup/"
)

// The streams.
const (
	// StreamAudit tells who did what and when.
	StreamAudit = "audit"
	// StreamEvents tells what happened.
	StreamEvents = "events"
)

// MaxSessions is how many sessions are kept. A commit that puts one more removes
// the one that was written longest ago.
const MaxSessions = 1000

// Sealed reports whether the value of a key is encrypted at rest. All are except those that
// are not confidential, so that a new kind of key is encrypted unless it is excluded here.
func Sealed(key string) bool {
	switch key {
	case KeyHead, KeyConfirm:
		return false
	}
	for _, open := range []string{PrefixRevision, PrefixBlob, PrefixCDN, PrefixNode, PrefixFields, PrefixAcknowledged} {
		if strings.HasPrefix(key, open) {
			return false
		}
	}
	return true
}

// Retention is for how long and how many records of a stream are kept. Those that
// are too many or too old are removed in a commit that appends, in small portions.
func Retention(stream string) (age time.Duration, records int) {
	const day = 24 * time.Hour
	switch stream {
	case StreamAudit:
		return 365 * day, 200_000
	case StreamEvents:
		return 30 * day, 100_000
	}
	return 30 * day, 10_000
}

// CheckKey returns what is wrong with a key. Keys are 1 to MaxKey bytes of printable
// ASCII other than space and backslash, without an empty part, "." or ".." between
// their slashes.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("invalid key of %d bytes, want 1 to %d: %w", len(key), MaxKey, ErrTooLarge)
	}
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c > '~' || c == '\\' {
			return fmt.Errorf("invalid key %q: byte %d is not allowed", key, i)
		}
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("invalid key %q: it has the part %q", key, part)
		}
	}
	return nil
}

// Check returns what is wrong with a change before any engine looks at it: too large,
// a key that is not valid, or one that is changed twice.
func (c *Change) Check() error {
	if n := len(c.If) + len(c.Put) + len(c.Delete) + len(c.Append); n > MaxOperations {
		return fmt.Errorf("a change of %d operations, at most %d are allowed: %w", n, MaxOperations, ErrTooLarge)
	}
	size, seen := 0, map[string]bool{}
	changed := func(key string) error {
		if seen[key] {
			return fmt.Errorf("key %q is changed twice in one change", key)
		}
		seen[key] = true
		size += len(key)
		return CheckKey(key)
	}
	if _, err := c.ID.Bytes(); err != nil {
		return err
	}
	for _, e := range c.Put {
		if err := changed(e.Key); err != nil {
			return err
		}
		if e.TTL < 0 {
			return fmt.Errorf("key %q lives for %v: a time to live is not negative", e.Key, e.TTL)
		}
		size += len(e.Value)
	}
	for _, key := range c.Delete {
		if err := changed(key); err != nil {
			return err
		}
	}
	for _, r := range c.Append {
		if err := CheckName(r.Stream); err != nil {
			return err
		}
		size += len(r.Data)
	}
	for _, cond := range c.If {
		if err := CheckKey(cond.Key); err != nil {
			return err
		}
	}
	if size > MaxChange {
		return fmt.Errorf("a change of %d bytes, at most %d are allowed: %w", size, MaxChange, ErrTooLarge)
	}
	return nil
}

// CheckName returns what is wrong with the name of a stream or of a lease. It is
// 1 to MaxName bytes, and otherwise like a key.
func CheckName(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("invalid name of %d bytes, at most %d are allowed: %w", len(name), MaxName, ErrTooLarge)
	}
	return CheckKey(name)
}
