package basicauth

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"headgate/internal/schema"
	"headgate/internal/setting/password"
)

// Config requires a user name and a password from clients (RFC 7617). Requests without
// valid ones get 401, for which browsers show a sign-in dialog.
type Config struct {
	// Enabled is whether authentication is required. `enabled: false` on a route admits
	// everyone there.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Realm is a text that browsers can show in the sign-in dialog. It is limited to ASCII.
	Realm string `json:"realm" label:"true" default:"Restricted" max:"128"`
	// Users are the users that can sign in. At least one is required.
	Users []User `json:"users,omitempty" label:"true" max:"10000" object:"user,name" example:"[{name: ada, password_hash: \"$2y$12$…\"}]"`
	// ForwardCredentials is whether servers get the user name and the password, too.
	// Otherwise they are removed from the request.
	ForwardCredentials bool `json:"forward_credentials" label:"true" default:"false"`
}

// User is a user that can sign in.
type User struct {
	// Name is the user name. It cannot contain a colon.
	Name string `json:"name" label:"true" required:"true" max:"255" example:"ada"`
	// PasswordHash is the hash of the password, never the password itself: argon2id in the
	// PHC form, bcrypt, or the weak apr1 of htpasswd files. `headgate hash-password` makes
	// one.
	PasswordHash string `json:"password_hash" label:"true" required:"true" secret:"true" max:"512" example:"$argon2id$v=19$m=19456,t=2,p=1$…"`
}

// Off reports whether authentication is disabled.
func (c *Config) Off() bool { return !c.Enabled }

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	if strings.IndexFunc(c.Realm, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		at.Field("realm").Problem("the realm contains characters outside printable ASCII", "remove them: browsers display them differently")
	}
	users := at.Field("users")
	if c.Enabled && len(c.Users) == 0 {
		users.Problem("basic_auth has no users", "add a user: {name: ada, password_hash: …}; headgate hash-password makes the hash")
	}
	seen := make(map[string]int, len(c.Users))
	for i := range c.Users {
		u := &c.Users[i]
		place := users.Index(i).Called("user", u.Name)
		name := password.Prepare(u.Name)
		if what, remedy := checkName(name); what != "" {
			place.Field("name").Problem(what, remedy)
		} else if first, twice := seen[name]; twice {
			place.Field("name").Problemf("remove one of them, or choose another name", "duplicate user name, users[%d] has it too", first)
		} else {
			seen[name] = i
		}
		hash, err := password.Parse(u.PasswordHash)
		if err != nil {
			what, remedy, _ := strings.Cut(err.Error(), "; ")
			place.Field("password_hash").Problem(what, remedy)
		} else if weakness := hash.Weakness(); weakness != "" {
			what, remedy, _ := strings.Cut(weakness, "; ")
			place.Field("password_hash").Note(what, remedy)
		}
	}
}

// checkName reports problems of a user name (RFC 7617, section 2).
func checkName(name string) (what, remedy string) {
	switch {
	case name == "":
		return "the name is empty", "write a name"
	case strings.Contains(name, ":"):
		return "the name contains a colon, which separates name and password", "write a name without it"
	case !utf8.ValidString(name):
		return "the name is not UTF-8", "write it in UTF-8"
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return fmt.Sprintf("the name contains the control character %U", r), "remove it"
		}
	}
	return "", ""
}
