package operator

import (
	"context"
	"crypto/subtle"
	"fmt"
	"os"
	"time"

	"headgate/internal/credential"
	"headgate/internal/event"
	"headgate/internal/file"
	"headgate/internal/store"
)

// setupAge is how long a set-up link is good for.
const setupAge = 24 * time.Hour

// setupKey is that of the set-up link of this machine. Machines that share a store have one
// each: the log of each names its own, and the first that is used ends all.
func (o *Operators) setupKey() string {
	if o.node == "" {
		return store.PrefixSetup + "link"
	}
	return store.PrefixSetup + "link/" + o.node
}

// maxSetupLinks is more set-up links than there are machines.
const maxSetupLinks = 100

type setupLink struct {
	Digest  string    `json:"digest"`
	Expires time.Time `json:"expires"`
}

// NeedsSetup reports whether there is no user yet.
func (o *Operators) NeedsSetup(ctx context.Context) (bool, error) {
	all, err := o.store.List(ctx, store.PrefixUser, "", 1)
	if err != nil {
		return false, fmt.Errorf("list users: %w", err)
	}
	return len(all) == 0, nil
}

// NewSetup makes the token of a set-up link, which lets one person become the first
// admin within a day. An earlier one of this machine is worth nothing afterwards. It is written to the
// set-up file, too, readable by its owner only.
func (o *Operators) NewSetup(ctx context.Context) (string, error) {
	text := credential.NewSecret()
	e := entry(o.setupKey(), setupLink{Digest: credential.Digest(text), Expires: o.now().Add(setupAge)})
	e.TTL = setupAge
	by := Identity{Name: "headgate"}
	_, err := o.commit(ctx, store.Change{Put: []store.Entry{e}, Append: []store.Record{by.Audit("setup.link", "", "", nil, nil)}}, "set-up link")
	if err != nil {
		return "", err
	}
	if o.setup != "" {
		if err := file.Replace(o.setup, []byte(text+"\n")); err != nil {
			return "", fmt.Errorf("write the set-up file: %w", err)
		}
	}
	return text, nil
}

// SetUp makes the first user, an admin, with the token of a set-up link, and signs it
// in.
func (o *Operators) SetUp(ctx context.Context, from Identity, text string, in SignIn) (Credentials, error) {
	if err := o.throttle.try(from.Address, ""); err != nil {
		return Credentials{}, err
	}
	links, open, err := o.findSetupLink(ctx, text)
	if err != nil {
		return Credentials{}, err
	}
	if !open {
		return Credentials{}, o.noSetup(from)
	}
	if needed, err := o.NeedsSetup(ctx); err != nil || !needed {
		if err == nil {
			err = &Error{Code: CodeForbidden, Detail: "there are users already", Remedy: "sign in as one of them"}
		}
		return Credentials{}, err
	}
	u, err := o.newUser(ctx, NewUser{Name: in.User, Role: Admin, Password: in.Password})
	if err != nil {
		return Credentials{}, err
	}
	from.Name = u.Name
	u.SignedIn = u.Created
	key := store.PrefixUser + u.Name
	s := session{Session: Session{User: u.Name, Role: Admin, Method: "setup"}, Local: true, Generation: u.Generation}
	change := store.Change{
		If:     []store.Condition{{Key: key}},
		Put:    []store.Entry{entry(key, u)},
		Append: []store.Record{from.Audit("user.create", "user "+u.Name, "", nil, u.seen(0))},
	}
	for _, l := range links {
		change.If, change.Delete = append(change.If, store.Condition{Key: l.Key, Revision: l.Revision}), append(change.Delete, l.Key)
	}
	c, err := o.createSession(ctx, from, s, in.Agent, in.OldCookie, change)
	if e, ok := err.(*Error); ok && e.Code == CodeStale {
		return Credentials{}, o.noSetup(from) // another request used the link at the same moment
	}
	if err != nil {
		return Credentials{}, err
	}
	o.removeSetupFile()
	o.publish(event.AuthSignedIn{Auth: event.Auth{User: u.Name, Address: addressText(from.Address), Method: "setup"}})
	return c, nil
}

// findSetupLink returns the set-up links of all machines, and whether one has this token and is
// not older than a day.
func (o *Operators) findSetupLink(ctx context.Context, text string) (links []store.Meta, open bool, err error) {
	if links, err = o.store.List(ctx, store.PrefixSetup, "", maxSetupLinks); err != nil {
		return nil, false, fmt.Errorf("list set-up links: %w", err)
	}
	digest := []byte(credential.Digest(text))
	for i, m := range links {
		var l setupLink
		// One that was replaced meanwhile fails the condition of the change.
		links[i].Revision, err = o.get(ctx, m.Key, "set-up link", &l)
		if e, ok := err.(*Error); err != nil && (!ok || e.Code != CodeNotFound) {
			return nil, false, err
		}
		if subtle.ConstantTimeCompare(digest, []byte(l.Digest)) == 1 && o.time().Before(l.Expires) {
			open = true
		}
	}
	return links, open, nil
}

// noSetup refuses a set-up link that does not let anyone in.
func (o *Operators) noSetup(from Identity) error {
	o.refused(event.Auth{Address: addressText(from.Address), Method: "setup", Reason: "credentials"})
	return &Error{Code: CodeForbidden, Field: "token", Detail: "the set-up link is not valid, or has been used, or is older than a day",
		Remedy: "restart headgate for a new one, or use headgate user add on the machine"}
}

func (o *Operators) removeSetupFile() {
	if o.setup == "" {
		return
	}
	if err := os.Remove(o.setup); err != nil && !os.IsNotExist(err) {
		o.log.Warn("the set-up file is not removed; its link has been used and opens nothing", "path", o.setup, "error", err)
	}
}
