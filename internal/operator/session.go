package operator

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"headgate/internal/credential"
	"headgate/internal/store"
)

// How long a session lasts, at most and without use, and how often its use is written
// down.
const (
	sessionAge  = 7 * 24 * time.Hour
	sessionIdle = 12 * time.Hour
	seenEvery   = 5 * time.Minute
	maxAgent    = 256
)

// Session is a signed-in person, as shown to others.
type Session struct {
	// ID names the session for people. It opens nothing.
	ID string `json:"id"`
	// User is the name of the user.
	User string `json:"user"`
	// Role is the role of the user.
	Role Role `json:"role"`
	// Method is how: password, totp, recovery_code, passkey, oidc or setup.
	Method string `json:"method"`
	// Address is the address of the client at sign-in.
	Address string `json:"address,omitempty"`
	// Agent is the User-Agent of the client at sign-in.
	Agent string `json:"user_agent,omitempty"`
	// Created is when the session began.
	Created time.Time `json:"created"`
	// Seen is when it was last used, to a few minutes.
	Seen time.Time `json:"seen"`
	// Expires is when it ends, even if it is used.
	Expires time.Time `json:"expires"`
}

// session is what is kept, under the digest of its cookie.
type session struct {
	Session
	Header     string `json:"header"`               // the digest of the secret in the header
	Generation int    `json:"generation,omitempty"` // of the user
	Local      bool   `json:"local"`                // the user is one of ours, not a provider's
	Grants     string `json:"grants,omitempty"`     // of the provider
	Passkey    string `json:"passkey,omitempty"`    // the id of the one that started it
}

// Credentials are the two secrets of a new session. They are shown once.
type Credentials struct {
	// Cookie is what the browser keeps and no script sees, Header what the console
	// keeps for its origin.
	Cookie, Header string
	// Expires is when the session ends at the latest.
	Expires time.Time
	// Session is what others see.
	Session Session
}

// sessionID returns the name of a session for people.
func sessionID(key string) string { return strings.TrimPrefix(key, store.PrefixSession)[:16] }

// createSession makes a session, and ends the one that the same browser had: whatever cookie
// it came with is worth nothing afterwards.
func (o *Operators) createSession(ctx context.Context, by Identity, s session, agent, oldCookie string, also store.Change) (Credentials, error) {
	c, key := o.newSession(&s, by, agent, sessionAge)
	e := entry(key, s)
	e.TTL = sessionIdle
	also.Put = append(also.Put, e)
	if oldCookie != "" {
		also.Delete = append(also.Delete, store.PrefixSession+credential.Digest(oldCookie))
	}
	also.Append = append(also.Append, by.Audit("session.sign_in", "user "+s.User, "", nil, s.Session))
	also.Who = by.Name
	if _, err := o.commit(ctx, also, "session"); err != nil {
		return Credentials{}, err
	}
	o.throttle.known.add(by.Address, s.User)
	return c, nil
}

// newSession completes a session that ends after an age, and returns its secrets and its key.
func (o *Operators) newSession(s *session, by Identity, agent string, age time.Duration) (c Credentials, key string) {
	c = Credentials{Cookie: credential.NewSecret(), Header: credential.NewSecret()}
	key = store.PrefixSession + credential.Digest(c.Cookie)
	at := o.now()
	if len(agent) > maxAgent {
		agent = agent[:maxAgent]
	}
	s.ID, s.Address, s.Agent = sessionID(key), addressText(by.Address), strings.ToValidUTF8(agent, "")
	s.Created, s.Seen, s.Expires = at, at, at.Add(age)
	s.Header = credential.Digest(c.Header)
	c.Expires, c.Session = s.Expires, s.Session
	return c, key
}

// BySession returns whose session this is. Both secrets must be right, and the user
// must still be there as it was.
func (o *Operators) BySession(ctx context.Context, cookie, header string, from netip.Addr) (Identity, error) {
	if cookie == "" || len(cookie) > 128 || len(header) > 128 {
		return Identity{}, errCredentials()
	}
	key := store.PrefixSession + credential.Digest(cookie)
	s, r, err := o.session(ctx, key)
	if err != nil {
		return Identity{}, err
	}
	if subtle.ConstantTimeCompare([]byte(credential.Digest(header)), []byte(s.Header)) != 1 {
		return Identity{}, errCredentials()
	}
	o.noteSeen(ctx, key, s, r)
	o.throttle.known.add(from, s.User)
	return Identity{Name: s.User, Role: s.Role, Session: s.ID, Address: from.Unmap(), Via: "console"}, nil
}

// session returns a session that is valid, with the role that its user has now.
func (o *Operators) session(ctx context.Context, key string) (*session, store.Revision, error) {
	s := &session{}
	if local, ok := o.detached.get(key); ok {
		return o.checkUser(ctx, &local, 0)
	}
	r, err := o.get(ctx, key, "session", s)
	if e, ok := err.(*Error); ok && e.Code == CodeNotFound {
		return nil, 0, errCredentials()
	}
	if err != nil {
		return nil, 0, err
	}
	at := o.time()
	if !at.Before(s.Expires) || at.Sub(s.Seen) > sessionIdle {
		return nil, 0, errCredentials()
	}
	return o.checkUser(ctx, s, r)
}

// checkUser returns a session with the role that its user has now, if the user is still
// there as it was.
func (o *Operators) checkUser(ctx context.Context, s *session, r store.Revision) (*session, store.Revision, error) {
	if s.Method == methodOIDC {
		return s, r, o.checkOIDC(s)
	}
	if !s.Local {
		return s, r, nil
	}
	u, _, err := o.user(ctx, s.User)
	if e, ok := err.(*Error); ok && e.Code == CodeNotFound {
		return nil, 0, errCredentials()
	}
	if err != nil {
		return nil, 0, err
	}
	if u.Disabled || u.Generation != s.Generation || s.Passkey != "" && !u.hasPasskey(s.Passkey) {
		return nil, 0, errCredentials()
	}
	s.Role = u.Role
	return s, r, nil
}

// noteSeen writes down that a session is used, now and then. It may fail.
func (o *Operators) noteSeen(ctx context.Context, key string, s *session, r store.Revision) {
	at := o.now()
	if at.Sub(s.Seen) < seenEvery || r == 0 {
		return // a session of this machine only has no revision
	}
	s.Seen = at
	e := entry(key, s)
	e.TTL = min(sessionIdle, store.TTL(at, s.Expires))
	if _, err := o.store.Commit(ctx, store.Change{If: []store.Condition{{Key: key, Revision: r}}, Put: []store.Entry{e}}); err != nil {
		o.log.Debug("the use of a session is not written down", "user", s.User, "error", err)
	}
}

// Sessions returns the sessions of a user, or of all for "", the newest first.
func (o *Operators) Sessions(ctx context.Context, name string) ([]Session, error) {
	entries, _, err := o.store.Snapshot(ctx, store.PrefixSession)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	all := []Session{}
	for _, e := range entries {
		s := session{}
		if json.Unmarshal(e.Value, &s) != nil || name != "" && s.User != name {
			continue
		}
		if valid, _, err := o.session(ctx, e.Key); err == nil {
			all = append(all, valid.Session)
		}
	}
	for _, key := range o.detached.keys() {
		if s, ok := o.detached.get(key); ok && (name == "" || s.User == name) {
			all = append(all, s.Session)
		}
	}
	slices.SortFunc(all, func(a, b Session) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// SignOut ends the session with a cookie. One that is not there is no error.
func (o *Operators) SignOut(ctx context.Context, by Identity, cookie string) error {
	return o.endSession(ctx, by, store.PrefixSession+credential.Digest(cookie), "session.sign_out")
}

// RevokeSession ends the session with an id of a user, or of any user for "". With dry
// it only reports whether it could.
func (o *Operators) RevokeSession(ctx context.Context, by Identity, id, name string, dry bool) error {
	if key, ok := o.findDetached(id, name); ok {
		if dry {
			return nil
		}
		return o.endSession(ctx, by, key, "session.revoke")
	}
	entries, _, err := o.store.Snapshot(ctx, store.PrefixSession)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	for _, e := range entries {
		s := session{}
		if json.Unmarshal(e.Value, &s) == nil && s.ID == id && (name == "" || s.User == name) {
			if dry {
				return nil
			}
			return o.endSession(ctx, by, e.Key, "session.revoke")
		}
	}
	return &Error{Code: CodeNotFound, Detail: "there is no such session"}
}

func (o *Operators) endSession(ctx context.Context, by Identity, key, action string) error {
	if ended, err := o.endDetached(ctx, by, key, action); ended {
		return err
	}
	s := session{}
	r, err := o.get(ctx, key, "session", &s)
	if e, ok := err.(*Error); ok && e.Code == CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	_ = r // if it was ended meanwhile, the result is the same
	_, err = o.commit(ctx, store.Change{Delete: []string{key}, Who: by.Name,
		Append: []store.Record{by.Audit(action, "user "+s.User, "", s.Session, nil)}}, "session")
	return err
}
