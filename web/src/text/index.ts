import { kept } from '@/api/store'
import { en, type Text } from './en'
import { writeIn } from './many'

export type { Text }

/** The languages that there are, each by its own name. */
export const languages = { en: 'English', de: 'Deutsch', fr: 'Français', es: 'Español' } as const
export type Language = keyof typeof languages

const key = 'headgate.language'
const known = (tag: string | null | undefined): Language | undefined => (tag && tag in languages ? (tag as Language) : undefined)

/** The language that the person has chosen; undefined is that of the browser. */
export const chosen = (): Language | undefined => known(kept.get(key))

/** Chooses a language, or with undefined that of the browser. The page is loaded again in it. */
export function choose(language: Language | undefined) {
  kept.set(key, language ?? null)
  location.reload()
}

/** The first language of the browser that there is. */
export function preferred(tags: readonly string[]): Language {
  for (const tag of tags) {
    const found = known(tag.toLowerCase().split('-')[0])
    if (found) return found
  }
  return 'en'
}

export const language: Language = chosen() ?? preferred(typeof document === 'undefined' ? [] : navigator.languages)
writeIn(language)
if (typeof document !== 'undefined') document.documentElement.lang = language

/** English comes with the console; another language is loaded before anything is drawn. */
const load: Record<Exclude<Language, 'en'>, () => Promise<Text>> = {
  de: () => import('./de').then((m) => m.de),
  fr: () => import('./fr').then((m) => m.fr),
  es: () => import('./es').then((m) => m.es),
}
export const t: Text = language === 'en' ? en : await load[language]()
