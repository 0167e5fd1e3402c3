package pair

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/file"
)

// SettingsName is the file in the state directory with the settings of this machine as a
// member of a group. Join and Init write it, and an operator may edit it; it is read at the
// start.
const SettingsName = "node.yaml"

// Settings are what a machine has to know besides its credential.
type Settings struct {
	// Address is the URL at which the other machine reaches this one.
	Address string
	// Follow is the URL of the other machine. Empty is the one with which it has joined.
	Follow string
	// Sync acknowledges changes only when the follower has them, while this machine leads.
	Sync bool
}

// LoadSettings reads the settings of a state directory; those of a file that does not exist
// are empty.
func LoadSettings(dir string) (s Settings, err error) {
	name := filepath.Join(dir, SettingsName)
	data, err := file.Read(name, 64<<10, "settings are shorter")
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	if len(root.Content) == 0 {
		return s, nil
	}
	if err := s.read(root.Content[0]); err != nil {
		return s, fmt.Errorf("%s:%w", name, err)
	}
	return s, nil
}

// read reads a mapping: address, and follow as an address or with the fields address and sync.
func (s *Settings) read(m *yaml.Node) error {
	return eachField(m, func(key string, v *yaml.Node) (err error) {
		switch {
		case key == "address":
			s.Address, err = addressOf(v)
		case key == "follow" && v.Kind == yaml.ScalarNode:
			s.Follow, err = addressOf(v)
		case key == "follow":
			err = eachField(v, func(key string, v *yaml.Node) (err error) {
				switch key {
				case "address":
					s.Follow, err = addressOf(v)
				case "sync":
					if v.Value != "true" && v.Value != "false" {
						return fmt.Errorf("%d: follow.sync must be true or false", v.Line)
					}
					s.Sync = v.Value == "true"
				default:
					return fmt.Errorf("%d: unknown field follow.%s: expected address or sync", v.Line, key)
				}
				return err
			})
		default:
			err = fmt.Errorf("%d: unknown field %s: expected address or follow", v.Line, key)
		}
		return err
	})
}

func eachField(m *yaml.Node, do func(key string, v *yaml.Node) error) error {
	if m.Kind != yaml.MappingNode {
		return fmt.Errorf("%d: expected fields", m.Line)
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if err := do(m.Content[i].Value, m.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func addressOf(v *yaml.Node) (string, error) {
	if v.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("%d: expected an address like https://192.0.2.7:9080", v.Line)
	}
	if v.Value == "" {
		return "", nil
	}
	address, err := CheckAddress(v.Value)
	if err != nil {
		return "", fmt.Errorf("%d: %w", v.Line, err)
	}
	return address, nil
}

// CheckAddress returns the URL of an admin listener in its one form, https://HOST:PORT.
func CheckAddress(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Port() == "" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return "", fmt.Errorf("invalid address %q: expected an address like https://192.0.2.7:9080", text)
	}
	return "https://" + u.Host, nil
}

func (s *Settings) save(dir string) error {
	text := "# This machine as a member of a group: see the guide \"Run headgate on two machines\".\n" +
		"# address is the URL of the admin listener of this machine for the other machine.\naddress: " + s.Address + "\n"
	if s.Follow != "" {
		text += "# follow is the other machine. With sync: true, a change is acknowledged only when the\n# follower has it; while the follower is away, changes are refused.\nfollow:\n  address: " + s.Follow + "\n" + fmt.Sprintf("  sync: %t\n", s.Sync)
	}
	return file.Replace(filepath.Join(dir, SettingsName), []byte(text))
}
