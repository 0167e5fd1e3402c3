package people

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"headgate/internal/credential"
	"headgate/internal/store"
)

// Attempt is what a client signs in with.
type Attempt struct {
	// Login is the name or the e-mail address.
	Login string
	// Password and Code are what the form has. Code is one of the authenticator, or a
	// recovery code.
	Password, Code string
	// Address is the client's.
	Address netip.Addr
	// Browser returns what identifies a browser in which a person of a generation has
	// signed in before, "" for others.
	Browser func(name string, generation int) string
}

// SignedIn is a person who has signed in.
type SignedIn struct {
	// Person is who.
	Person *Listed
	// Method is how: password, recovery_code, passkey or invitation.
	Method string
	// Warning is what an operator should know, "" for nothing.
	Warning string
}

// SignIn signs a person in with a password and a code, which are checked together: an answer
// never shows which of them is wrong, nor whether there is such a person, and takes the same
// time. The error is ErrCredentials, ErrBusy, a *Throttled, or wraps ErrUnavailable.
func (p *People) SignIn(ctx context.Context, in Attempt) (*SignedIn, error) {
	a, r, name, err := p.find(ctx, in.Login)
	if err != nil {
		return nil, err
	}
	browser := ""
	if in.Browser != nil && a.Name != "" {
		browser = in.Browser(a.Name, a.Generation)
	}
	release, err := p.place(ctx, browser != "")
	if err != nil {
		return nil, err
	}
	defer release()
	// Inside of the place: attempts at once do not pass each other before one is counted.
	counts := p.limits.counts(name, browser, in.Address)
	if err := p.limits.check(counts); err != nil {
		return nil, err
	}
	right := p.matches(a.Hash, in.Password)
	for range 5 {
		method, coded := a.code(in.Code, store.Time(p.o.Store))
		if !right || !coded || a.Disabled {
			p.limits.failed(counts)
			return nil, ErrCredentials
		}
		a.SignedIn = p.now()
		_, err := p.put(ctx, a, store.Change{If: []store.Condition{{Key: keyAccount + a.Name, Revision: r}}, Who: "headgate", Why: "signed in"})
		if err == nil {
			return &SignedIn{Person: p.Listed(a.Name), Method: method}, nil
		}
		if !isStale(err) {
			return nil, err
		}
		// Something else has changed the person at the same moment, such as another sign-in:
		// a code is accepted once, so it is checked again.
		hash := a.Hash
		if a, r, _, err = p.find(ctx, a.Name); err != nil {
			return nil, err
		}
		right = a.Hash == hash
	}
	return nil, ErrUnavailable
}

// find returns the account of a login, and the name by which attempts are counted. Where
// there is none, the account is an empty one that no password opens.
func (p *People) find(ctx context.Context, login string) (*account, store.Revision, string, error) {
	name := strings.ToLower(strings.TrimSpace(login))
	counted := name
	if address, ok := cleanEmail(name); ok {
		counted = address
		if _, err := p.get(ctx, keyEmail+address, &name); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, 0, "", err
		}
	}
	if !ValidName(name) {
		name = "?" // it is looked up like others
	}
	a := &account{}
	r, err := p.get(ctx, keyAccount+name, a)
	if errors.Is(err, store.ErrNotFound) {
		return &account{Secret: p.decoy, Disabled: true}, 0, counted, nil
	}
	if err != nil {
		return nil, 0, "", err
	}
	return a, r, a.Name, nil
}

// code accepts a code of the authenticator, or a recovery code, and notes its use in the
// account.
func (a *account) code(text string, at time.Time) (method string, ok bool) {
	text = strings.TrimSpace(text)
	step := credential.CheckTOTP(a.Secret, strings.ReplaceAll(text, " ", ""), a.LastStep, at)
	left, recovered := credential.UseRecovery(a.Recovery, text)
	switch {
	case step > 0:
		a.LastStep = step
		return "password", true
	case recovered:
		a.Recovery = left
		return "recovery_code", true
	}
	return "", false
}

// place waits for a place to check a password. Known browsers have one of their own. The func
// that it returns gives it back.
func (p *People) place(ctx context.Context, known bool) (release func(), err error) {
	release, ok := p.checks.Acquire(ctx, known)
	if !ok {
		return nil, ErrBusy
	}
	return release, nil
}

// ChangePassword replaces the password of a person who has signed in, with the current one
// and a code. All sessions of the person end.
func (p *People) ChangePassword(ctx context.Context, name string, in Attempt, password string) (*SignedIn, error) {
	in.Login = name
	if err := credential.CheckPassword(name, password); err != nil {
		return nil, &Error{Code: CodeInvalid, Field: "password", Detail: err.Error()}
	}
	s, err := p.SignIn(ctx, in)
	if err != nil {
		return nil, err
	}
	a, r, err := p.account(ctx, name)
	if err != nil {
		return nil, err
	}
	release, err := p.place(ctx, true)
	if err != nil {
		return nil, err
	}
	a.Hash, err = credential.HashPassword(name, password)
	release()
	if err != nil {
		return nil, &Error{Code: CodeInvalid, Field: "password", Detail: err.Error()}
	}
	before := a.shown(r)
	a.Generation++
	c := store.Change{If: []store.Condition{{Key: keyAccount + name, Revision: r}}, Append: p.own(name, in.Address).record("person.password", name, before, a.shown(0)), Who: Provider + "/" + name}
	if _, err := p.put(ctx, a, c); err != nil {
		return nil, err
	}
	s.Person = p.Listed(name)
	return s, nil
}

// own is a person who changes what is theirs.
func (p *People) own(name string, from netip.Addr) By {
	if p.o.Own == nil {
		return By{Name: Provider + "/" + name}
	}
	return p.o.Own(Provider+"/"+name, from)
}
