import os from "os";

function openGate(name) {
  return os.join("gates", name);
}
