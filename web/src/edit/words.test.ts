import { expect, it } from 'vitest'
import { label } from './words'

it.each([
  ['request_timeout', 'Request timeout'],
  ['redirect_http_to_https', 'Automatically redirect HTTP to HTTPS'],
  ['https_port', 'HTTPS port'],
  ['ca_file', 'CA file'],
  ['ip_filter', 'IP filter'],
  ['cache', 'Cache'],
])('calls %s %s', (field, want) => expect(label(field)).toBe(want))
