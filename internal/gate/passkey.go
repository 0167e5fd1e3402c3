package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"

	"headgate/internal/gate/people"
	"headgate/internal/passkey"
)

// ceremony is a question for a passkey in progress. The page keeps it, sealed.
type ceremony struct {
	Session webauthn.SessionData `json:"s"`
	Until   time.Time            `json:"u"`
	For     string               `json:"f"` // sign-in, a person's name, or the digest of a link
}

// Question is what a page asks the browser for.
type Question struct {
	// Options are for the browser, as JSON.
	Options string
	// Sealed is what the answer is checked with.
	Sealed string
}

// passkeySite returns where passkeys are used. Origins are those that the configuration has:
// what the Host field of a request says is no proof.
func (e *Engine) passkeySite(title string) passkey.Site {
	u := e.use.Load()
	s := passkey.Site{Host: u.host, Title: title}
	if title == "" {
		s.Title = u.host
	}
	s.Origins = u.origins()
	return s
}

// origins returns the origins of the sign-in page, that of the usual port first.
func (u *inUse) origins() []string {
	if u.host == "" {
		return nil
	}
	numbers := []int{443}
	for _, n := range u.ports {
		if !slices.Contains(numbers, n) && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers[1:])
	var out []string
	for _, n := range numbers {
		if n == 443 {
			out = append(out, "https://"+u.host)
		} else {
			out = append(out, "https://"+u.host+":"+strconv.Itoa(n))
		}
	}
	return out
}

func (e *Engine) question(c passkey.Question, of string, err error) (Question, error) {
	if err != nil {
		return Question{}, err
	}
	sealed, err := e.sealText("passkey", ceremony{c.Session, e.time().Add(passkey.CeremonyAge), of})
	return Question{string(c.Options), sealed}, err
}

// answered reads a sealed question that was asked for a purpose.
func (e *Engine) answered(sealed, of string) (webauthn.SessionData, bool) {
	var c ceremony
	ok := e.openText("passkey", sealed, &c) && c.For == of && e.time().Before(c.Until)
	return c.Session, ok
}

// AskPasskey returns the question for any passkey.
func (e *Engine) AskPasskey(title string) (Question, error) {
	c, err := e.people.AskPasskey(e.passkeySite(title))
	return e.question(c, "sign-in", err)
}

// Passkey signs a person in with the answer of a browser.
func (e *Engine) Passkey(c *Client, sealed, answer, old string) (*Entered, error) {
	session, ok := e.answered(sealed, "sign-in")
	if !ok || !e.Local() {
		return nil, ErrExpired
	}
	if e.tooMany(c.Address) {
		return nil, ErrThrottled
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	in, err := e.people.Passkey(ctx, e.passkeySite(""), session, []byte(answer))
	if err != nil {
		return nil, e.localFailed(c, "", err)
	}
	return e.entered(c, in, e.knownOf(c.Cookies.Known), old)
}

// AskNewPasskey returns the question for a new passkey of the person of a session.
func (e *Engine) AskNewPasskey(s *Session, title string) (Question, error) {
	name, ok := localName(s)
	if !ok || !e.Local() {
		return Question{}, ErrExpired
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	c, err := e.people.AskNewPasskey(ctx, e.passkeySite(title), name)
	return e.question(c, "person "+name, err)
}

// AddPasskey adds a passkey to the person of a session.
func (e *Engine) AddPasskey(c *Client, s *Session, sealed, answer string) error {
	name, ok := localName(s)
	session, asked := e.answered(sealed, "person "+name)
	if !ok || !asked || !e.Local() {
		return ErrExpired
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	return e.passkeyError(e.people.AddPasskey(ctx, e.passkeySite(""), name, session, []byte(answer), c.Address))
}

// RemovePasskey removes a passkey of the person of a session.
func (e *Engine) RemovePasskey(c *Client, s *Session, id string) error {
	name, ok := localName(s)
	if !ok {
		return ErrExpired
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	return e.passkeyError(e.people.RemovePasskey(ctx, e.people.Own(name, c.Address), name, id, false))
}

func (e *Engine) passkeyError(err error) error {
	if err == nil || errors.Is(err, people.ErrCredentials) {
		return err
	}
	e.o.Log.Warn("a passkey cannot be changed", "error", err)
	if field := (*people.Error)(nil); errors.As(err, &field) {
		return ErrExpired
	}
	return fmt.Errorf("%w: %v", ErrUnavailable, err)
}

// AskInvitedPasskey returns the question for a new passkey of an invited person.
func (e *Engine) AskInvitedPasskey(link, title string) (Question, error) {
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	c, err := e.people.AskInvited(ctx, e.passkeySite(title), link)
	return e.question(c, "link "+link, err)
}

// AcceptPasskey uses an invitation link with a new passkey, and signs the person in.
func (e *Engine) AcceptPasskey(c *Client, link, sealed, answer, old string) (*Entered, error) {
	session, ok := e.answered(sealed, "link "+link)
	if !ok || !e.Local() {
		return nil, people.ErrLink
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	in, err := e.people.AcceptPasskey(ctx, e.passkeySite(""), link, session, []byte(answer), c.Address)
	if err != nil {
		if errors.Is(err, people.ErrCredentials) {
			return nil, err
		}
		return nil, linkError(err)
	}
	return e.entered(c, in, e.knownOf(c.Cookies.Known), old)
}

// LocalPerson returns the person of a session who is kept by headgate.
func (e *Engine) LocalPerson(s *Session) (people.Person, bool) {
	name, ok := localName(s)
	if !ok {
		return people.Person{}, false
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	p, err := e.people.Person(ctx, name)
	return p, err == nil
}

func localName(s *Session) (string, bool) {
	if s == nil || s.Person().Provider != people.Provider {
		return "", false
	}
	return s.Person().User, true
}

// Passkeys returns how many passkeys people have, and how many of them were made at another
// sign-in host, where alone they work.
func (e *Engine) Passkeys() (all, lost int) {
	host := e.use.Load().host
	for at, n := range e.people.PasskeyHosts() {
		if all += n; at != host {
			lost += n
		}
	}
	return all, lost
}

// Redirect is an address to register at a provider.
type Redirect struct {
	Provider, URI string
	// AfterCutover is whether it is needed only when the sign-in page has the usual port.
	AfterCutover bool
}

// Redirects returns the addresses to register at providers.
func (e *Engine) Redirects() []Redirect {
	u := e.use.Load()
	var out []Redirect
	usual := len(u.ports) == 0
	for _, n := range u.ports {
		usual = usual || n == 443
	}
	for _, p := range u.providers {
		for i, origin := range u.origins() {
			out = append(out, Redirect{p.Name(), callback(origin, p.Name()), i == 0 && !usual})
		}
	}
	slices.SortStableFunc(out, func(a, b Redirect) int {
		switch {
		case a.AfterCutover == b.AfterCutover:
			return 0
		case a.AfterCutover:
			return 1
		}
		return -1
	})
	return out
}
