package acme

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"

	"headgate/internal/store"
)

// How long steps may take.
const (
	requestTimeout = 30 * time.Second
	pollTimeout    = 5 * time.Minute
	orderTimeout   = 90 * time.Minute // of all steps; the DNS may take an hour
	leaseTime      = 5 * time.Minute
)

// order is one walk from the wish for a certificate to the certificate. It belongs
// to one goroutine.
type order struct {
	m      *Manager
	entry  *Config
	names  []string
	record *Record // published by step and save
	forced bool    // also if none is due

	adopted bool // another process had ordered it

	lease   *store.Lease
	client  *protocol.Client
	dir     protocol.Directory
	account protocol.Account
	order   protocol.Order
	key     crypto.Signer
	solvers []solver // whose responses must be removed
}

// obtain runs all steps of an order. Each of them is recorded for the operator, and the
// state that is needed to continue is stored before the next request to the authority. The
// error is a *Trouble.
func (o *order) obtain(ctx context.Context) error {
	if err := checkNames(o.names); err != nil {
		return err // before a query or stored state has this name
	}
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	ctx, release, err := o.takeLease(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := o.adopt(ctx); err != nil || o.adopted {
		return err
	}
	defer o.withdraw()
	defer func() {
		if o.client != nil {
			o.client.HTTPClient.CloseIdleConnections()
		}
	}()
	for _, step := range []func(context.Context) error{
		o.openDirectory,
		o.openAccount,
		o.resume,
		o.place,
		o.authorize,
		o.finalize,
		o.collect,
	} {
		if err := step(ctx); err != nil {
			if o.lease != nil && leaseLost(o.lease) {
				return &Trouble{Code: "lease_lost", Message: "another process has taken over the order", Hint: "headgate will check again", elsewhere: true}
			}
			return troubleOf(err)
		}
	}
	return nil
}

// step notes what has been done, for the timeline.
func (o *order) step(state State, format string, args ...any) {
	o.record.step(o.m.now(), state, format, args...)
	o.m.publish(o.record)
}

// save keeps the record as it is, under the lease.
func (o *order) save(ctx context.Context, more ...store.Entry) error {
	return o.m.keep(ctx, o.record, o.lease, more...)
}

// server returns the name and the URL of the directory in use, and whether it is a staging
// one, at which an order is only a trial.
func (o *order) server() (name, url string, staging bool) {
	name = serverOf(o.entry, o.record)
	d := directoryOf(name)
	if o.record.Rehearse && d.staging != "" {
		return name, d.staging, true
	}
	return name, d.url, false
}

// serverOf returns which of an entry's directories is to be asked.
func serverOf(e *Config, r *Record) string {
	all := append([]string{e.Directory}, e.Fallbacks...)
	return all[r.Server%len(all)]
}

func (o *order) openDirectory(ctx context.Context) (err error) {
	_, url, _ := o.server()
	if o.client, err = o.m.client(ctx, o.entry, url); err != nil {
		return err
	}
	if o.dir, err = o.client.GetDirectory(ctx); err != nil {
		return err
	}
	if p := o.entry.Profile; p != "" && o.dir.Meta != nil && len(o.dir.Meta.Profiles) > 0 {
		if _, ok := o.dir.Meta.Profiles[p]; !ok {
			return &Trouble{Code: "bad_profile", Message: fmt.Sprintf("the directory has no profile %q", p), Hint: cut("it has " + strings.Join(sortedKeys(o.dir.Meta.Profiles), ", ")), blocked: true}
		}
	}
	return nil
}

func (o *order) openAccount(ctx context.Context) (err error) {
	_, url, _ := o.server()
	o.account, err = o.m.account(ctx, o.client, o.entry, url)
	return err
}

// resume takes up an order that was under way when a process ended. One that cannot
// be taken up is given up, and the next step places another.
func (o *order) resume(ctx context.Context) error {
	open := o.record.Open
	_, url, _ := o.server()
	if open == nil {
		return nil
	}
	if open.URL == "" || open.Directory != url || open.Account != o.account.Location || !sameNames(open.Chosen, o.names) {
		o.giveUp("it was not placed, or something else is wanted now")
		return nil
	}
	found, err := o.client.GetOrder(ctx, o.account, protocol.Order{Location: open.URL})
	var p protocol.Problem
	switch {
	case errors.As(err, &p) && p.Status >= 400 && p.Status < 500 && p.Status != 429:
		o.giveUp("the authority does not know it any more")
		return nil
	case err != nil:
		return err
	case found.Status == protocol.StatusInvalid:
		o.giveUp("the authority had given it up")
		return nil
	}
	found.Location = open.URL
	key, err := x509.ParsePKCS8PrivateKey(open.Key)
	if err != nil {
		o.giveUp("its key cannot be read")
		return nil
	}
	o.order, o.key = found, key.(crypto.Signer)
	o.step(Pending, "order taken up again, the authority has it as %s", found.Status)
	return nil
}

// giveUp ends an order that cannot be taken up again.
func (o *order) giveUp(why string) {
	o.record.giveUp(o.m.now(), &Trouble{Code: "given_up", Message: "the order was not finished: " + why, Hint: "another one is placed"})
}

// place looks whether an order can succeed, and places it.
func (o *order) place(ctx context.Context) error {
	if o.order.Location != "" {
		return nil
	}
	chosen, err := o.preflight(ctx)
	if err != nil {
		return err
	}
	name, url, staging := o.server()
	if t := o.m.mayPlace(name, url); t != nil {
		return t
	}
	if o.key, err = newKey(o.entry.KeyType); err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(o.key)
	if err != nil {
		return err
	}
	o.record.startAttempt(name, staging, o.m.now())
	o.record.Open = &openOrder{Directory: url, Account: o.account.Location, Key: der, Chosen: chosen, Staging: staging, Began: o.m.now()}
	o.step(Pending, "order for %s at %s", strings.Join(o.names, ", "), name)
	if err := o.save(ctx); err != nil {
		return err
	}
	wanted := protocol.Order{Profile: o.entry.Profile, Replaces: o.replaces(ctx, name, staging)}
	for _, n := range o.names {
		wanted.Identifiers = append(wanted.Identifiers, identifier(n))
	}
	if o.order, err = o.newOrder(ctx, wanted); err != nil {
		return err
	}
	o.record.Open.URL = o.order.Location
	o.step(Pending, "the authority has accepted the order and requires %s", proofs(len(o.order.Authorizations)))
	return o.save(ctx)
}

// newOrder places an order. If the authority rejects it because of the replaced
// certificate, or because it does not know the account, it is placed again: an authority
// that was replaced behind the same URL has no state of the previous one.
func (o *order) newOrder(ctx context.Context, wanted protocol.Order) (protocol.Order, error) {
	placed, err := o.newOrderWithout(ctx, &wanted)
	if !o.accountUnknown(ctx, err) {
		return placed, err
	}
	_, url, _ := o.server()
	o.m.forgetAccount(ctx, o.entry, url)
	if err := o.openAccount(ctx); err != nil {
		return placed, err
	}
	o.record.Open.Account = o.account.Location
	o.step(Pending, "the authority does not know the account any more; a new one was made")
	if err := o.save(ctx); err != nil {
		return placed, err
	}
	return o.newOrderWithout(ctx, &wanted)
}

// newOrderWithout places an order, without the certificate that it names if need be.
func (o *order) newOrderWithout(ctx context.Context, wanted *protocol.Order) (protocol.Order, error) {
	placed, err := o.client.NewOrder(ctx, o.account, *wanted)
	if wanted.Replaces == "" || !refusesReplaces(err) {
		return placed, err
	}
	o.record.NoReplaces, wanted.Replaces = true, ""
	o.step(Pending, "the authority refuses to replace the certificate before (%s); ordered without naming it", troubleOf(err).detail())
	return o.client.NewOrder(ctx, o.account, *wanted)
}

// refusesReplaces reports whether the error of an order may be about the certificate that
// it names. There is a kind for one that was renewed already (RFC 9773, section 7.4); for
// one that they do not know, authorities use kinds that can mean anything.
func refusesReplaces(err error) bool {
	var p protocol.Problem
	if !errors.As(err, &p) {
		return false
	}
	switch p.Type {
	case protocol.ProblemTypeAlreadyReplaced, protocol.ProblemTypeMalformed, protocol.ProblemTypeUnauthorized:
		return true
	}
	return p.Status >= 400 && p.Status < 500 && strings.Contains(strings.ToLower(p.Detail), "replace")
}

// accountUnknown reports whether the error of an order means that the authority does not
// know the account. There is a problem type for that, which not every authority uses: after
// an error that could mean it, the account is queried.
func (o *order) accountUnknown(ctx context.Context, err error) bool {
	var p protocol.Problem
	if !errors.As(err, &p) || p.Type != protocol.ProblemTypeMalformed && p.Type != protocol.ProblemTypeUnauthorized {
		return p.Type == protocol.ProblemTypeAccountDoesNotExist
	}
	_, err = o.client.GetAccount(ctx, o.account)
	p = protocol.Problem{}
	return errors.As(err, &p) && p.Status >= 400 && p.Status < 500 && p.Status != http.StatusTooManyRequests
}

// proofs returns a number with its noun.
func proofs(n int) string {
	if n == 1 {
		return "1 proof"
	}
	return fmt.Sprintf("%d proofs", n)
}

// preflight is the preflight.
func (o *order) preflight(ctx context.Context) (map[string]Challenge, error) {
	o.record.Warnings = nil
	o.record.step(o.m.now(), Preflight, "")
	o.m.publish(o.record)
	chosen, warnings, err := o.m.preflight(ctx, o.entry, o.names, o.record, o.dir)
	o.record.Warnings = warnings
	return chosen, err
}

// replaces returns what names the certificate that the order is to renew (RFC 9773,
// section 5), "" where there is none at this directory.
func (o *order) replaces(ctx context.Context, directory string, staging bool) string {
	if staging || o.record.NoReplaces || o.record.NotAfter.IsZero() || o.record.Directory != directory || o.dir.RenewalInfo == "" {
		return ""
	}
	leaf, err := o.m.leaf(ctx, o.record.Name)
	if err != nil {
		return ""
	}
	id, err := protocol.ARIUniqueIdentifier(leaf)
	if err != nil {
		return ""
	}
	return id
}

// authorize shows the authority that every name is ours.
func (o *order) authorize(ctx context.Context) error {
	if o.order.Status != protocol.StatusPending {
		return nil
	}
	var waiting []protocol.Authorization
	for _, url := range o.order.Authorizations {
		authz, err := o.client.GetAuthorization(ctx, o.account, url)
		if err != nil {
			return err
		}
		name := authz.IdentifierValue()
		if authz.Status == protocol.StatusValid {
			o.step(Pending, "%s: the authority knows already that it is ours", name)
			continue
		}
		if err := o.solve(ctx, &authz, name); err != nil {
			return err
		}
		waiting = append(waiting, authz)
	}
	for _, authz := range waiting {
		name := authz.IdentifierValue()
		if _, err := o.client.PollAuthorization(ctx, o.account, authz); err != nil {
			return err
		}
		o.step(Pending, "%s: the authority has seen that it is ours", name)
	}
	o.withdraw()
	o.step(Ready, "every name is ours")
	return nil
}

// solve serves the response to the chosen challenge, waits until it is visible, and
// notifies the authority.
func (o *order) solve(ctx context.Context, authz *protocol.Authorization, name string) error {
	kind := o.record.Open.Chosen[name]
	i := slices.IndexFunc(authz.Challenges, func(c protocol.Challenge) bool { return c.Type == string(kind) })
	if i < 0 {
		return &Trouble{Code: "challenge_not_offered", Message: cut(fmt.Sprintf("%s: the authority does not offer %s", name, kind)), Hint: "write another challenge", blocked: true}
	}
	c := authz.Challenges[i]
	if c.Status != protocol.StatusPending {
		return nil // notified before a crash; wait for the result
	}
	s, err := o.m.solverFor(kind, o.entry, c, name)
	if err != nil {
		return err
	}
	o.solvers = append(o.solvers, s)
	if err := s.present(ctx, o); err != nil {
		return err
	}
	o.step(Pending, "%s: answer to %s in place%s", name, kind, s.where())
	if err := o.awaitOthers(ctx, s, name); errors.Is(err, errOthers) {
		o.step(Pending, "%s: proven by dns-01 instead", name)
		o.record.Open.Chosen[name] = DNS01
		if err := o.save(ctx); err != nil {
			return err
		}
		return o.solve(ctx, authz, name)
	} else if err != nil {
		return err
	}
	if err := s.await(ctx); err != nil {
		return err
	}
	if _, err := o.client.InitiateChallenge(ctx, o.account, c); err != nil {
		return err
	}
	return nil
}

// withdraw takes answers back. It does so as well as it can.
func (o *order) withdraw() {
	most := 2 * time.Minute
	if o.m.ctx.Err() != nil {
		most = 5 * time.Second // the process ends; the order is taken up again
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	for _, s := range o.solvers {
		if err := s.cleanUp(ctx); err != nil {
			o.m.log.Warn("take the answer to a challenge back", "certificate", o.record.Title(), "error", err)
		}
	}
	o.solvers = nil
}

// sameNames reports whether challenges were chosen for just these names.
func sameNames(chosen map[string]Challenge, names []string) bool {
	if len(chosen) != len(names) {
		return false
	}
	for _, n := range names {
		if _, ok := chosen[n]; !ok {
			return false
		}
	}
	return true
}
