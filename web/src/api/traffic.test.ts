import { expect, it } from 'vitest'
import { counts } from './traffic'

it('counts requests and errors of each proxy', () => {
  const text = `# HELP x
headgate_requests_total{port="web",proxy="shop",reason="",route="/",status_class="2xx"} 3
headgate_requests_total{port="web",proxy="shop",reason="",route="/a\\"b",status_class="5xx"} 2
headgate_requests_total{port="web",proxy="a\\"b",reason="",route="/",status_class="2xx"} 1
headgate_requests_totals{proxy="no"} 7`
  expect([...counts(text)]).toEqual([
    ['shop', { requests: 5, errors: 2 }],
    ['a"b', { requests: 1, errors: 0 }],
  ])
})
