export const entries = {
  add: 'Add',
  edit: 'Edit',
  goes: 'to be removed',
  newTitle: (what: string) => `New: ${what}`,
  newName: 'How you call it',
  goOn: 'Go on',
  badName: 'Letters, digits, dots, _ and - only; it begins with a letter or digit.',
  takenName: 'This name is taken.',
  locked: (why: string) => `It cannot be changed here: ${why}.`,
  discovered: (container: string) => `from container ${container}`,
}
