package unit

import "fmt"

// Switch is a boolean that also knows that it was not set, for a setting that
// is inherited when it is absent. The zero value is Unset.
type Switch uint8

// The three positions.
const (
	Unset Switch = iota
	Off
	On
)

// Or returns whether s is on, or inherited when s is unset.
func (s Switch) Or(inherited bool) bool {
	if s == Unset {
		return inherited
	}
	return s == On
}

// Off reports whether s is Off or Unset.
func (s Switch) Off() bool { return s != On }

// IsZero reports whether s is unset, so that it is left out of JSON written
// with omitzero.
func (s Switch) IsZero() bool { return s == Unset }

// String returns "true", "false" or "".
func (s Switch) String() string {
	switch s {
	case On:
		return "true"
	case Off:
		return "false"
	}
	return ""
}

// ParseSwitch reads "true", "on", "false", "off", or "" for unset.
func ParseSwitch(text string) (Switch, error) {
	switch text {
	case "true", "on":
		return On, nil
	case "false", "off":
		return Off, nil
	case "":
		return Unset, nil
	}
	return Unset, fmt.Errorf("%q is not a boolean, expected true or false", text)
}

// MarshalText writes what String returns.
func (s Switch) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSwitch reads.
func (s *Switch) UnmarshalText(text []byte) error {
	v, err := ParseSwitch(string(text))
	if err != nil {
		return err
	}
	*s = v
	return nil
}

// MarshalJSON writes a JSON boolean, or null when s is unset.
func (s Switch) MarshalJSON() ([]byte, error) {
	if s == Unset {
		return []byte("null"), nil
	}
	return []byte(s.String()), nil
}

// UnmarshalJSON reads a JSON boolean or null.
func (s *Switch) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*s = Unset
		return nil
	}
	return s.UnmarshalText(data)
}
