package api

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/operator"
	"headgate/internal/passkey"
)

// passkeyState is whether passkeys can be used where the console is open now.
type passkeyState struct {
	// Offered is whether they can.
	Offered bool `json:"offered"`
	// Host is the host name that they belong to.
	Host string `json:"host,omitempty"`
	// Reason is why they cannot: address (the console is open at an IP address), name
	// (the host name is not in admin.hosts), plain_http (there is no TLS), or certificate
	// (no certificate has the host name).
	Reason string `json:"reason,omitempty"`
}

// The reasons why passkeys are not offered.
const (
	passkeyAddress     = "address"
	passkeyName        = "name"
	PasskeyPlain       = "plain_http"
	PasskeyCertificate = "certificate"
)

// passkeyRemedies are what to do about the reasons.
var passkeyRemedies = map[string][2]string{
	passkeyAddress:     {"passkeys belong to a host name, and the console is open at an IP address", "open it at a host name that is in admin.hosts"},
	passkeyName:        {"the host name at which the console is open is not in admin.hosts", "add it to admin.hosts, or open the console at a name that is there"},
	PasskeyPlain:       {"browsers use passkeys over HTTPS only, and the console is open over plain HTTP", "set admin.certificate, or open the console through a proxy with HTTPS"},
	PasskeyCertificate: {"no certificate has the host name of the console", "add one under certificates or acme"},
}

// passkeysAt returns the site of passkeys of the console where a request has opened it, and
// the reason why there is none. The host is one that the configuration has, and so are the
// origins: what the Host field of a request says is no proof.
func (a *API) passkeysAt(rq *http.Request) (passkey.Site, string) {
	host := rq.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return passkey.Site{}, passkeyAddress
	}
	if a.Hosts == nil || a.Passkeys == nil || !slices.Contains(a.Hosts(), host) {
		return passkey.Site{}, passkeyName
	}
	origins, why := a.Passkeys(host)
	if rq.TLS == nil && !a.fromProxy(rq) {
		why = PasskeyPlain
	}
	return passkey.Site{Host: host, Origins: origins, Title: "headgate"}, why
}

// fromProxy reports whether a request came through a trusted proxy.
func (a *API) fromProxy(rq *http.Request) bool {
	at, err := netip.ParseAddrPort(rq.RemoteAddr)
	return err == nil && a.Trusted != nil && a.Trusted(at.Addr().Unmap())
}

// passkeySite returns the site, or the refusal that says why there is none.
func (c *call) passkeySite() (passkey.Site, error) {
	s, why := c.api.passkeysAt(c.rq)
	if why != "" {
		return s, refuse("passkeys_unavailable", "", passkeyRemedies[why][0], passkeyRemedies[why][1])
	}
	return s, nil
}

func (a *API) passkeyState(rq *http.Request) passkeyState {
	s, why := a.passkeysAt(rq)
	if why != "" {
		return passkeyState{Reason: why}
	}
	return passkeyState{Offered: true, Host: s.Host}
}

// passkeyQuestion is what a browser is asked for.
type passkeyQuestion struct {
	// Options are for navigator.credentials, as the member publicKey; bytes are in Base64url.
	Options json.RawMessage `json:"options"`
	// Sealed is sent back with the answer. It is good for ten minutes and one answer.
	Sealed string `json:"sealed"`
}

func questionBodyOf(q operator.PasskeyQuestion, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return passkeyQuestion{q.Options, q.Sealed}, nil
}

func (a *API) askPasskey(c *call, _ *empty) (any, error) {
	s, err := c.passkeySite()
	if err != nil {
		return nil, err
	}
	return questionBodyOf(a.Operators.AskPasskey(s))
}

// passkeyAnswer is the answer of a browser.
type passkeyAnswer struct {
	// Sealed is that of the question.
	Sealed string `json:"sealed" required:"true" writeonly:"true" max:"4096"`
	// Answer is the PublicKeyCredential as JSON text, with bytes in Base64url.
	Answer string `json:"answer" required:"true" writeonly:"true" max:"8192"`
}

func (c *call) passkeyAnswer(sealed, answer string) operator.PasskeyAnswer {
	return operator.PasskeyAnswer{Sealed: sealed, Answer: []byte(answer), Agent: c.rq.UserAgent(), OldCookie: cookieOf(c.rq)}
}

func (a *API) signInPasskey(c *call, in *passkeyAnswer) (any, error) {
	s, err := c.passkeySite()
	if err != nil {
		return nil, err
	}
	return c.start(a.Operators.SignInPasskey(c.rq.Context(), c.anonymous(), s, c.passkeyAnswer(in.Sealed, in.Answer)))
}

// ownPasskeys are the passkeys of the operator who sends the request.
type ownPasskeys struct {
	passkeyState
	// Passkeys are all of the user, also those for another host name.
	Passkeys []passkey.Passkey `json:"passkeys"`
}

func (a *API) passkeys(c *call) (any, error) {
	if err := c.onlySession(); err != nil {
		return nil, err
	}
	u, err := a.Operators.User(c.rq.Context(), c.who.Name)
	if err != nil {
		return nil, err
	}
	all := u.Passkeys
	if all == nil {
		all = []passkey.Passkey{}
	}
	return ownPasskeys{a.passkeyState(c.rq), all}, nil
}

// newPasskeyInput asks for a new passkey.
type newPasskeyInput struct {
	// CurrentPassword is the password. It is not required within ten minutes of a sign-in
	// with a passkey.
	CurrentPassword string `json:"current_password,omitempty" writeonly:"true" max:"1024"`
}

func (a *API) askNewPasskey(c *call, in *newPasskeyInput) (any, error) {
	if err := c.onlySession(); err != nil {
		return nil, err
	}
	s, err := c.passkeySite()
	if err != nil {
		return nil, err
	}
	if in.CurrentPassword != "" || !a.Operators.SignedInWithPasskey(c.rq.Context(), cookieOf(c.rq)) {
		if err := c.verify(in.CurrentPassword); err != nil {
			return nil, err
		}
	}
	return questionBodyOf(a.Operators.AskNewPasskey(c.rq.Context(), s, c.who.Name))
}

// newPasskeyAnswer is the answer of a browser that has created a passkey.
type newPasskeyAnswer struct {
	passkeyAnswer
	// Name is what the passkey is called: 1 to 64 bytes, for people.
	Name string `json:"name" required:"true" max:"64" example:"Phone"`
}

func (a *API) addPasskey(c *call, in *newPasskeyAnswer) (any, error) {
	if err := c.onlySession(); err != nil {
		return nil, err
	}
	s, err := c.passkeySite()
	if err != nil {
		return nil, err
	}
	return a.Operators.AddPasskey(c.rq.Context(), c.who, s, c.who.Name, in.Name, c.passkeyAnswer(in.Sealed, in.Answer))
}

func (a *API) removeOwnPasskey(c *call) (any, error) {
	if err := c.onlySession(); err != nil {
		return nil, err
	}
	_, err := a.Operators.RemovePasskey(c.rq.Context(), c.who, c.who.Name, c.rq.PathValue("passkey"), c.dryRun)
	return nil, err
}

func (a *API) removePasskeys(c *call) (any, error) {
	u, err := a.Operators.RemovePasskey(c.rq.Context(), c.who, c.name(), c.rq.PathValue("passkey"), c.dryRun)
	if err != nil {
		return nil, err
	}
	return showUser(u), nil
}
