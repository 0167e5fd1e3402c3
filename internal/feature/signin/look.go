package signin

import (
	"fmt"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/file"
	"headgate/internal/gate/page"
)

// lookInterval is how often the file of a logo is checked for changes while the page is in use.
const lookInterval = 2 * time.Second

// look is the brand of a page, whose logo may change. A nil look is the usual one.
type look struct {
	color string
	logo  *file.Followed // nil for none

	checked clock.Spacing // of looks at the file
	made    atomic.Pointer[branded]
}

// branded is the brand with one content of the file.
type branded struct {
	of    *file.Content // nil without a logo
	brand *page.Brand
}

// newLook returns the look of settings that were checked, nil if they have none.
func newLook(c *Config, env exchange.Env) (*look, error) {
	if c.Logo == "" && c.Color == "" {
		return nil, nil
	}
	l := &look{color: c.Color}
	if c.Logo != "" {
		var err error
		if l.logo, err = env.File(c.Logo); err != nil {
			return nil, fmt.Errorf("sign_in.logo: %w", err)
		}
		l.checked.Last.Store(exchange.Now())
	}
	if err := l.make(); err != nil {
		return nil, fmt.Errorf("sign_in.logo: %s: %w", c.Logo, err)
	}
	return l, nil
}

// make makes the brand of the present logo.
func (l *look) make() error {
	next := &branded{}
	var data []byte
	if l.logo != nil {
		next.of = l.logo.Content()
		data = next.of.Data
	}
	var err error
	if next.brand, err = page.NewBrand(l.color, data); err != nil {
		return err
	}
	l.made.Store(next)
	return nil
}

// brand returns the brand. If the file changed and cannot be used, the logo stays as it was.
func (l *look) brand() *page.Brand {
	if l == nil {
		return nil
	}
	if l.logo != nil && l.checked.Due(exchange.Now(), lookInterval) {
		if l.logo.Refresh() == nil && l.logo.Content() != l.made.Load().of {
			_ = l.make()
		}
	}
	return l.made.Load().brand
}
