// Package bodylimit refuses request bodies that are larger than allowed.
package bodylimit

import "headgate/internal/setting/unit"

// Config is the largest request body, in bytes. A larger one is answered with
// 413: at once when Content-Length says so, else while it streams; nothing is
// buffered. 0 switches it off.
type Config = unit.Size
