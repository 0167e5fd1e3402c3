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

/** "1 server", "2 servers": the form for one, and for all other numbers. */
export const many = (n: number, one: string, more = one + 's') => `${count(n)} ${rules.select(n) === 'one' ? one : more}`
