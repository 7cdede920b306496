const assert = require("node:assert");
const { flatten } = require("./flatten.js");

const nested = [1, [2, [3, [4]]]];
assert.deepStrictEqual(flatten(nested), [1, 2, 3, 4]);
assert.deepStrictEqual(flatten(nested, 1), [1, 2, [3, [4]]]);
assert.deepStrictEqual(flatten(nested, 0), nested);
