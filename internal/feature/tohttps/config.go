package tohttps

import "headgate/internal/setting/unit"

// Config sends clients that come over plain HTTP to HTTPS. It is true or false.
type Config = unit.Switch
