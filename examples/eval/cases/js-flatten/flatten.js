// flatten returns the elements of nested lists as one list. With a depth, lists that are
// nested more deeply stay.
function flatten(list) {
  return list.flat(Infinity);
}

module.exports = { flatten };
