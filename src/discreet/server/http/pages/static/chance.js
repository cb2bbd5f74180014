// Chance for lessons about made-up people. Answers about real ones are drawn by the server, exactly.
export const uniform = () => (crypto.getRandomValues(new Uint32Array(1))[0] + 0.5) / 2 ** 32;
export const coin = (share) => uniform() < share;

// Laplace noise of a scale.
export function laplace(scale) {
  const u = uniform() - 0.5;
  return -scale * Math.sign(u) * Math.log(1 - 2 * Math.abs(u));
}

export const laplaceDensity = (x, scale) => Math.exp(-Math.abs(x) / scale) / (2 * scale);

// Half-width of the interval that holds 95 % of it.
export const laplaceMargin = (scale) => scale * Math.log(20);
