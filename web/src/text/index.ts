import { en } from './en'

/** All texts of the console. Another language is another object of this type. */
export const t = en
