package basicauth

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"headgate/internal/schema"
	"headgate/internal/setting/password"
)

// Config asks clients for a user name and a password (RFC 7617). Who has none gets
// 401, and browsers ask the person in front of them.
type Config struct {
	// Enabled is whether clients are asked. `enabled: false` on a route lets
	// everyone in there.
	Enabled bool `json:"enabled" label:"true" default:"true"`
	// Realm is what browsers may show when they ask. Its letters are those of
	// ASCII.
	Realm string `json:"realm" label:"true" default:"Restricted" max:"128"`
	// Users are who may sign in. There has to be one.
	Users []User `json:"users,omitempty" label:"true" max:"10000" object:"user,name" example:"[{name: ada, password_hash: \"$2y$12$…\"}]"`
	// ForwardCredentials is whether servers get the user name and the password
	// too. Otherwise they are taken out of the request.
	ForwardCredentials bool `json:"forward_credentials" label:"true" default:"false"`
}

// User is somebody who may sign in.
type User struct {
	// Name is the user name. It holds no colon.
	Name string `json:"name" label:"true" required:"true" max:"255" example:"ada"`
	// PasswordHash is the hash of the password, never the password itself:
	// argon2id in the PHC form, bcrypt, or for files of htpasswd its apr1, which
	// is weak. `headgate hash-password` makes one.
	PasswordHash string `json:"password_hash" label:"true" required:"true" secret:"true" max:"512" example:"$argon2id$v=19$m=19456,t=2,p=1$…"`
}

// Off reports whether nobody is asked.
func (c *Config) Off() bool { return !c.Enabled }

// Check tells what is wrong with the settings, which stand at at.
func (c *Config) Check(at schema.Place) {
	if strings.IndexFunc(c.Realm, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		at.Field("realm").Problem("the realm contains characters outside printable ASCII", "remove them: browsers show it in many ways")
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

// checkName tells what is wrong with a user name (RFC 7617, section 2).
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
