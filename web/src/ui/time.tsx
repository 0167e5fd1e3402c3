import { languageTag } from '@/text/many'

/**
 * Times as people read them: in their language, and in the time zone of the browser. Which
 * that is, is in the title.
 */
const made = new Map<string, Intl.DateTimeFormat>()
function format(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = languageTag() + JSON.stringify(options)
  const known = made.get(key)
  if (known) return known
  const f = new Intl.DateTimeFormat(formsOf(languageTag()), options)
  made.set(key, f)
  return f
}

/** The forms of times of the region that the browser has, if it is one of the language: en-GB rather than en. */
function formsOf(tag: string): string {
  const all = typeof navigator === 'undefined' ? [] : navigator.languages
  return all.find((l) => l === tag || l.startsWith(tag + '-')) ?? tag
}

type Time = string | number | Date

/** A time of the day; with seconds unless they do not matter. */
export const clock = (time: Time, exact = true) => format({ timeStyle: exact ? 'medium' : 'short' }).format(new Date(time))

/** A day and a time without seconds. */
export const moment = (time: Time) => format({ dateStyle: 'medium', timeStyle: 'short' }).format(new Date(time))

const two = (n: number) => String(Math.floor(n)).padStart(2, '0')

/** A time of the day as logs have it, with 24 hours and milliseconds: 13:05:12.034. */
export function exact(time: Time): string {
  const at = new Date(time)
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`
}
export const exactTitle = (time: Time) => withOffset(time)

/** A day and a time with seconds and the offset from UTC: 23 Nov 2026, 10:05:12 (UTC+02:00). */
export function withOffset(time: Time): string {
  const at = new Date(time)
  const off = -at.getTimezoneOffset()
  return `${format({ dateStyle: 'medium', timeStyle: 'medium' }).format(at)} (UTC${off < 0 ? '−' : '+'}${two(Math.abs(off) / 60)}:${two(Math.abs(off) % 60)})`
}

/** A moment: its day and time, or its time alone. */
export const When = ({ time, only, exact = only === 'clock', className }: { time: Time; only?: 'clock'; exact?: boolean; className?: string }) => (
  <time dateTime={new Date(time).toISOString()} title={withOffset(time)} className={className}>
    {only ? clock(time, exact) : format({ dateStyle: 'medium', timeStyle: exact ? 'medium' : 'short' }).format(new Date(time))}
  </time>
)
