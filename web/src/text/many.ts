/** The language in which numbers, times and plurals are written. */
let language = 'en'
let rules = new Intl.PluralRules('en')

export function writeIn(tag: string) {
  language = tag
  rules = new Intl.PluralRules(tag)
}
export const languageTag = () => language

/** A number with the separators of the language. */
export const count = (n: number, options?: Intl.NumberFormatOptions) => n.toLocaleString(language, options)

/** A share of one as the language writes it, not rounded up: 100% is the whole. */
export const percent = (share: number) => (Math.floor(share * 10_000 + 1e-6) / 10_000).toLocaleString(language, { style: 'percent', maximumFractionDigits: 2 })

/** "1 server", "2 servers": the form for one, and for all other numbers. */
export const many = (n: number, one: string, more = one + 's') => `${count(n)} ${rules.select(n) === 'one' ? one : more}`
