package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// RegexError returns the error of a regular expression, without the library's prefix.
func RegexError(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return e.Code.String() + ": " + e.Expr
	}
	return err.Error()
}

// CheckReplacement returns a problem for a group in a replacement that expr does not have;
// what is "" if there is none. $1, ${1}, $name and ${name} refer to groups, $$ is a dollar
// sign, as in regexp.Expand.
func CheckReplacement(replacement string, expr *regexp.Regexp) (what, remedy string) {
	for {
		i := strings.IndexByte(replacement, '$')
		if i < 0 {
			return "", ""
		}
		replacement = replacement[i+1:]
		if strings.HasPrefix(replacement, "$") {
			replacement = replacement[1:]
			continue
		}
		name, rest, ok := groupName(replacement)
		if !ok {
			return "a $ is not followed by a group", "write $1, ${name}, or $$ for a dollar sign"
		}
		replacement = rest
		if !hasGroup(expr, name) {
			remedy := fmt.Sprintf("it has %d groups; write ${1}x when letters follow a group", expr.NumSubexp())
			return fmt.Sprintf("the replacement names the group %q, which the expression does not have", name), remedy
		}
	}
}

// groupName takes the name of a group off s, which follows a dollar sign.
func groupName(s string) (name, rest string, ok bool) {
	braced := strings.HasPrefix(s, "{")
	if braced {
		s = s[1:]
	}
	end := 0
	for end < len(s) && (s[end] == '_' || s[end] >= '0' && s[end] <= '9' || s[end] >= 'a' && s[end] <= 'z' || s[end] >= 'A' && s[end] <= 'Z') {
		end++
	}
	name, rest = s[:end], s[end:]
	if braced {
		rest, ok = strings.CutPrefix(rest, "}")
		return name, rest, ok && name != ""
	}
	return name, rest, name != ""
}

// hasGroup reports whether expr has the group of this name or number.
func hasGroup(expr *regexp.Regexp, name string) bool {
	if n, err := strconv.Atoi(name); err == nil {
		return n <= expr.NumSubexp()
	}
	return slices.Contains(expr.SubexpNames(), name)
}
