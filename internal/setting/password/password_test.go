package password

import (
	"strings"
	"testing"
)

// Made by openssl passwd -apr1, htpasswd -B and the reference argon2.
func TestKnownHashes(t *testing.T) {
	for _, c := range []struct{ name, hash, password string }{
		{"apr1", "$apr1$salt1234$G61s9lpZAELkzUFCbj/53/", "secret"},
		{"apr1, long", "$apr1$x$/Wcfyz4e.0IBhdJ5yqTor0", "a long pässword with more than sixteen"},
		{"bcrypt", "$2y$05$p6rcU/OqbXb3bUJZ3iie5OQ2wJCnOG4KhP7NX8wf9b/fMKt.1SYfO", "secret"},
		{"argon2id", "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "password"},
	} {
		h, err := Parse(c.hash)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !h.Matches(c.password) || h.Matches(c.password+"x") || h.Matches("") {
			t.Errorf("%s: matches %v, a longer one %v, an empty one %v; want only the first", c.name, h.Matches(c.password), h.Matches(c.password+"x"), h.Matches(""))
		}
	}
}

func TestNewHashesMatch(t *testing.T) {
	for name, hash := range map[string]func(string) (string, error){"argon2id": Argon2id, "bcrypt": Bcrypt} {
		for _, password := range []string{"correct horse: bättery", strings.Repeat("x", LongestBcrypt)} {
			text, err := hash(password)
			if err != nil {
				t.Fatal(err)
			}
			h, err := Parse(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			right, wrong := h.Matches(password), h.Matches(password[1:])
			if h.Weakness() != "" || h.Text() != text || !right || wrong {
				t.Errorf("%s of %q: matches %v, without its first letter %v", name, password, right, wrong)
			}
		}
	}
}

// A decomposed letter is the composed one.
func TestOneFormOfLetters(t *testing.T) {
	text, err := Argon2id("pa\u0308sse")
	if err != nil {
		t.Fatal(err)
	}
	h, _ := Parse(text)
	if !h.Matches(Prepare("p\u00e4sse")) || !h.Matches(Prepare("pa\u0308sse")) {
		t.Error("the two forms of ä are not the same")
	}
	if got := Prepare("\xff\xfe"); got != "\xff\xfe" {
		t.Errorf("bytes that are not UTF-8 became %q", got)
	}
}

func TestPasswordsThatAreNotHashed(t *testing.T) {
	for _, p := range []string{"", strings.Repeat("x", Longest+1), "a\nb", "a\x00", "\xff"} {
		if _, err := Argon2id(p); err == nil {
			t.Errorf("argon2id of %.20q was made", p)
		}
		if _, err := Bcrypt(p); err == nil {
			t.Errorf("bcrypt of %.20q was made", p)
		}
	}
	if _, err := Bcrypt(strings.Repeat("x", LongestBcrypt+1)); err == nil || !strings.Contains(err.Error(), "argon2id") {
		t.Errorf("bcrypt of a long password: %v, want a word about argon2id", err)
	}
}

func TestHashesThatAreRefused(t *testing.T) {
	const salt, sum = "c2FsdHNhbHQ", "AAAAAAAAAAAAAAAAAAAAAA"
	argon := func(params string) string { return "$argon2id$v=19$" + params + "$" + salt + "$" + sum }
	if _, err := Parse(argon("m=64,t=1,p=1")); err != nil {
		t.Fatalf("a good hash: %v", err)
	}
	bcrypt := "$2y$12$" + strings.Repeat("a", 53)
	for _, c := range []struct{ text, want string }{
		{"", "not a password hash"}, {"secret", "not a password hash"}, {"$2", "not a password hash"}, {"$", "not a password hash"},
		{"{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "unsalted SHA-1"}, {"$6$salt$x", "SHA-512 crypt"}, {"$1$salt$x", "MD5 crypt"},
		{"$argon2i$v=19$m=64,t=1,p=1$" + salt + "$" + sum, "argon2i is not"},
		{"$argon2id$m=64,t=1,p=1$" + salt + "$" + sum, "not whole"}, {"$argon2id$v=19$m=64", "write it in quotes"},
		{"$argon2id$v=16$m=64,t=1,p=1$" + salt + "$" + sum, "version 19"},
		{argon("m=262145,t=1,p=1"), "256 MiB"}, {argon("m=4294967295,t=1,p=1"), "256 MiB"}, {argon("m=4294967296,t=1,p=1"), "want m="},
		{argon("m=65536,t=17,p=1"), "too long"}, {argon("m=64,t=4294967295,p=1"), "too long"},
		{argon("m=64,t=1,p=17"), "lanes"}, {argon("m=15,t=1,p=2"), "8 KiB"}, {argon("m=7,t=1,p=1"), "8 KiB"},
		{argon("m=64,t=0,p=1"), "want t="}, {argon("m=64,t=1,p=0"), "want p="}, {argon("m=064,t=1,p=1"), "want m="},
		{argon("m=+64,t=1,p=1"), "want m="}, {argon("m=-64,t=1,p=1"), "want m="}, {argon("m=,t=1,p=1"), "want m="},
		{argon("t=1,m=64,p=1"), "want m="}, {argon("m=64,t=1,p=1,keyid=x"), "want m, t and p"}, {argon(""), "want m, t and p"},
		{"$argon2id$v=19$m=64,t=1,p=1$c2FsdA$" + sum, "salt"}, {"$argon2id$v=19$m=64,t=1,p=1$" + salt + "=$" + sum, "salt"},
		{"$argon2id$v=19$m=64,t=1,p=1$" + salt + "$AAAA", "last part"}, {argon("m=64,t=1,p=1") + "$x", "not whole"},
		{"$argon2id$v=19$m=64,t=1,p=1$" + strings.Repeat("A", 100) + "$" + sum, "salt"},
		{"$argon2id$v=19$m=64,t=1,p=1$" + salt + "$" + strings.Repeat("A", 200), "last part"},
		{"$2x$12$" + bcrypt[7:], "version 2x"}, {bcrypt[:59], "60 characters"}, {bcrypt + "a", "60 characters"},
		{"$2y$16$" + bcrypt[7:], "between 4 and 15"}, {"$2y$03$" + bcrypt[7:], "between"}, {"$2y$xx$" + bcrypt[7:], "between"},
		{bcrypt[:59] + "!", "60 characters"}, {"$apr1$salt", "not whole"}, {"$apr1$$" + sum, "not whole"}, {"$apr1$saltsaltsalt$" + sum, "not whole"},
	} {
		_, err := Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
		if err != nil && len(c.text) > 3 && strings.Contains(err.Error(), c.text) {
			t.Errorf("%q: the error repeats what may be a password: %v", c.text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$2y$04$abcdefghijklmnopqrstuuabcdefghijklmnopqrstuvwxyzabcdefghi")
	f.Add("$apr1$salt1234$mGDaWrbh3UY6wH5n17rsl/")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := Parse(text)
		if err != nil {
			return
		}
		if h.kind == isArgon2id && (h.argon.memory > maxMemory || uint64(h.argon.memory)*uint64(h.argon.time) > maxWork) {
			t.Fatalf("%q passes the bounds", text)
		}
	})
}
