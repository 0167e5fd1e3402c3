package gate

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"headgate/internal/credential"
	"headgate/internal/gate/people"
	"headgate/internal/proto/uri"
	"headgate/internal/store"
)

// Errors of tokens and links.
var (
	// ErrExists is wrapped when a name is in use.
	ErrExists = errors.New("the name is in use")
	// ErrNotFound is wrapped when there is no such object.
	ErrNotFound = errors.New("not found")
	// ErrTooMany is wrapped when there are as many as there may be.
	ErrTooMany = errors.New("there are too many")
)

// Invalid is an error of a field of something that is to be made.
type Invalid struct {
	// Field is the name of the field, Detail what is wrong, Remedy what to do.
	Field, Detail, Remedy string
}

// Error returns the detail and the remedy.
func (e *Invalid) Error() string { return e.Detail + "; " + e.Remedy }

// objectName is the form of the names of tokens.
var objectName = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]{0,63}$`)

// ValidName reports whether a text can be the name of a token.
func ValidName(name string) bool { return objectName.MatchString(name) }

// NewToken is what a token is made of.
type NewToken struct {
	Name, Description string
	// Person is the person's id, e-mail address or user name; "" makes a token of its own.
	Person         string
	Proxies, Paths []string
	Expires        time.Time
	// By is the operator.
	By string
}

// CreateToken makes a token and returns its text, which is not kept. With dry nothing is
// kept, and the text is "".
func (e *Engine) CreateToken(n NewToken, dry bool) (*Token, string, error) {
	t := &Token{
		Name: n.Name, Description: n.Description, Proxies: n.Proxies, Created: e.time().UTC().Truncate(time.Second),
		CreatedBy: n.By, Expires: n.Expires.UTC(),
	}
	if err := e.check(t, &n); err != nil {
		return nil, "", err
	}
	secret := credential.NewSecret()
	t.key = digestOf(secret)
	t.ready()
	switch {
	case e.tokens.named(t.Name) != nil:
		return nil, "", fmt.Errorf("token %s: %w", t.Name, ErrExists)
	case len(e.tokens.all()) >= maxTokens:
		return nil, "", fmt.Errorf("%d tokens: %w", maxTokens, ErrTooMany)
	case dry:
		return t, "", nil
	}
	entry := t.entry(e.time())
	revision, err := e.commit(store.Change{If: []store.Condition{{Key: entry.Key}}, Put: []store.Entry{entry}, Who: n.By, Why: "made token " + t.Name})
	if errors.Is(err, ErrExpired) {
		return nil, "", fmt.Errorf("token %s: %w", t.Name, ErrExists)
	} else if err != nil {
		return nil, "", err
	}
	t.revision.Store(uint64(revision))
	e.tokens.put(t)
	return t, TokenPrefix + secret, nil
}

// check checks what a token is made of, and finds its person.
func (e *Engine) check(t *Token, n *NewToken) error {
	switch {
	case !ValidName(n.Name):
		return &Invalid{"name", fmt.Sprintf("invalid name %.70q", n.Name), "write 1 to 64 lower-case letters, digits and . _ @ -"}
	case !n.Expires.IsZero() && !n.Expires.After(e.time()):
		return &Invalid{"expires", "the time has passed already", "write a later time"}
	case len(n.Proxies) > maxTokenList:
		return &Invalid{"proxies", "there are too many proxies", fmt.Sprintf("name at most %d", maxTokenList)}
	case len(n.Paths) > maxTokenList:
		return &Invalid{"paths", "there are too many paths", fmt.Sprintf("name at most %d", maxTokenList)}
	}
	if err := checkDescription(n.Description); err != nil {
		return err
	}
	for _, path := range n.Paths {
		normal, err := NormalPath(path)
		if err != nil {
			return &Invalid{"paths", err.Error(), "write a path such as /api"}
		}
		t.Paths = append(t.Paths, normal)
	}
	if n.Person == "" {
		return nil
	}
	if t.Person, t.Issuer = e.person(n.Person); t.Person == nil {
		return &Invalid{"person", fmt.Sprintf("no person %.70q has signed in", n.Person), "write the e-mail address or PROVIDER/ID of a person with a session"}
	}
	return nil
}

// checkDescription checks the description of a token or a link.
func checkDescription(text string) error {
	if len(text) > 1024 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return &Invalid{"description", "the description is too long or contains control characters", "shorten it"}
	}
	return nil
}

// NormalPath returns the one form of a path that rules are bound to. It is an error if
// servers may read it in several ways.
func NormalPath(path string) (string, error) {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#") {
		return "", fmt.Errorf("%.100q is not a path", path)
	}
	b, err := uri.AppendNormal(nil, path)
	if err != nil || uri.SpellingOf(string(b)) == uri.Loose {
		return "", fmt.Errorf("servers may read the path %.100q in several ways", path)
	}
	return string(b), nil
}

// person finds a person among those with a session, the newest session first, and those kept
// by headgate.
func (e *Engine) person(text string) (*Person, string) {
	for _, s := range e.Sessions() {
		if p := s.Person(); p.ID == text || p.Email != "" && strings.EqualFold(p.Email, text) || p.User == text {
			return p, s.Issuer()
		}
	}
	if e.Local() {
		if l := e.people.Listed(strings.TrimPrefix(text, people.Provider+"/")); l != nil && !l.Disabled {
			return localPerson(l), localIssuer(l)
		}
	}
	return nil, ""
}

// RevokeToken ends a token. What it is used for at the moment is aborted.
func (e *Engine) RevokeToken(name, who string, dry bool) error {
	t := e.tokens.named(name)
	if t == nil {
		return fmt.Errorf("token %s: %w", name, ErrNotFound)
	}
	if dry {
		return nil
	}
	if _, err := e.commit(store.Change{Delete: []string{store.PrefixGateToken + name}, Who: cmp.Or(who, "headgate"), Why: "revoked token " + name}); err != nil {
		return err
	}
	e.forgetToken(name)
	return nil
}
